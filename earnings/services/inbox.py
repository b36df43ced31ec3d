"""
The inbox: an event is inserted by its unique key before anything else happens, and what repeats it is compared.

The inbox forgets old rows that no credit depends on; what is refused at the door was never in it.
"""

import hashlib
import json
import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import QuerySet

from earnings.models import WORTHLESS, AdNetwork, Postback, PostbackKind, PostbackState
from earnings.networks.base import PostbackEvent
from gateway.common import db
from users.models import User

logger = logging.getLogger(__name__)

_INSERT = """
INSERT INTO earnings_postback (
    network_id, external_id, kind, original_id, user_id, state, amount, takes_back, payout_usd, rate, badge_bonus,
    modifier_bonus, credits, occurred_at, received_at, is_conflicting, raw, headers, payload_hash, request_id
) VALUES (
    %(network)s, %(external_id)s, %(kind)s, %(original_id)s, %(user)s::bigint, %(state)s, %(amount)s,
    %(takes_back)s::numeric, %(payout_usd)s::numeric, %(rate)s, 0, 0, 0, %(occurred_at)s::timestamptz,
    %(received_at)s, false, %(raw)s, %(headers)s::jsonb, %(payload_hash)s, %(request_id)s
)
ON CONFLICT DO NOTHING
RETURNING id
"""


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """An event whose signature is right, and what came with it."""

    network: AdNetwork
    event: PostbackEvent
    user: User | None
    raw: bytes
    received_at: datetime
    headers: dict[str, str] = field(default_factory=dict)
    request_id: str = ""

    @property
    def payload_hash(self) -> str:
        """SHA-256 of what the event says; times and signatures differ between repeats and are left out."""
        event = self.event
        payout = "" if event.payout_usd is None else f"{event.payout_usd.normalize():f}"
        said = [event.kind, event.external_id, event.original_id, event.user_ref]
        return hashlib.sha256(
            "\n".join([*said, f"{event.amount.normalize():f}", payout]).encode()
        ).hexdigest()


def insert(arrival: Arrival) -> Postback | None:
    """
    Store the event and return its row, or None where it is stored already.

    A competing insert of the same event is waited for.
    """
    event = arrival.event
    postback = Postback(
        network=arrival.network,
        external_id=event.external_id,
        kind=event.kind,
        original_id=event.original_id,
        user_id=arrival.user.pk if arrival.user else None,
        state=PostbackState.RECEIVED,
        amount=event.amount,
        takes_back=event.takes_back,
        payout_usd=event.payout_usd,
        rate=arrival.network.rate,
        occurred_at=event.occurred_at,
        received_at=arrival.received_at,
        raw=arrival.raw,
        headers=arrival.headers,
        payload_hash=arrival.payload_hash,
        request_id=arrival.request_id,
    )
    row = db.first_row(_INSERT, _params(postback))
    if row is None:
        return None
    postback.pk = row[0]
    return postback


def _params(postback: Postback) -> dict[str, object]:
    return {
        "network": postback.network_id,
        "external_id": postback.external_id,
        "kind": str(postback.kind),
        "original_id": postback.original_id,
        "user": postback.user_id,
        "state": str(postback.state),
        "amount": postback.amount,
        "takes_back": postback.takes_back,
        "payout_usd": postback.payout_usd,
        "rate": postback.rate,
        "occurred_at": postback.occurred_at,
        "received_at": postback.received_at,
        "raw": postback.raw,
        "headers": json.dumps(postback.headers),
        "payload_hash": postback.payload_hash,
        "request_id": postback.request_id,
    }


def compare_with_first(arrival: Arrival) -> None:
    """Mark the first one as contradicted where the repeat says something else. The first word counts."""
    event = arrival.event
    first = Postback.objects.filter(network=arrival.network, external_id=event.external_id, kind=event.kind)
    if event.kind == PostbackKind.REVERSAL:
        first = first.filter(user=arrival.user.pk if arrival.user else None)
    contradicted = first.exclude(payload_hash=arrival.payload_hash)
    if contradicted.update(is_conflicting=True):
        logger.error("CONFLICTING_DUPLICATE: %s says two things of %s", arrival.network, event.external_id)


def related(postback: Postback, *kinds: PostbackKind) -> QuerySet[Postback]:
    """Return the network's other rows about the same credit, whomever they name."""
    return Postback.objects.filter(network=postback.network, original_id=postback.original_id, kind__in=kinds)


def key_of(credit: Postback) -> str:
    """Return the key of what a credit posts."""
    return f"earning:{credit.network.slug}:{credit.external_id}"


# Short transactions: postbacks come in meanwhile.
_BATCH = 2_000


def purge(*, now: datetime) -> int:
    """
    Delete old rows that no credit was given for, and return how many they were.

    A repeat of such a row is stored anew and credits nobody, as before: the row of its
    credit, if there is one, stays and decides.
    """
    old = Postback.objects.filter(
        WORTHLESS, entry=None, received_at__lt=now - timedelta(days=settings.POSTBACK_KEPT_DAYS)
    ).order_by("received_at")
    deleted = 0
    while found := list(old.values_list("pk", flat=True)[:_BATCH]):
        deleted += Postback.objects.filter(pk__in=found).delete()[0]
    return deleted
