"""
A postback from the network's request to its row, in a fixed order of checks.

Network enabled → path token → address list → signature → freshness → form → user → row → decision (`earnings`).
A request that fails the first two gets the same 404 as a wrong path; later failures get the response that its network
expects.
"""

import hashlib
import logging
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import connection, transaction

from earnings.models import WORTHLESS, AdNetwork, Postback, PostbackKind, PostbackState, VerifierKeySet
from earnings.networks import ADAPTERS
from earnings.networks.base import (
    Adapter,
    Answer,
    MacroNotReplaced,
    PostbackEvent,
    PostbackPostponed,
    PostbackRefused,
    RawRequest,
    check_freshness,
)
from earnings.services import earnings, networks
from gateway.common import db
from gateway.common.crypto import SealedUnderAnotherKey
from gateway.common.errors import NotFound
from gateway.common.http import is_within
from users.models import User

logger = logging.getLogger(__name__)
# Short transactions: postbacks arrive meanwhile.
PURGE_BATCH = 2_000
# Retention of postbacks without credits. Networks retry a postback for nine days.
_KEPT_DAYS = 400


def receive(*, slug: str, request: RawRequest, now: datetime, request_id: str = "") -> Answer:
    """
    Verify a postback, store it with its effects, and return the response that the network expects.

    A repeat gets the same response and changes nothing. A refused postback leaves no row.

    Raises:
        NotFound: the network does not exist, is disabled or does not use the method, or the path's token is wrong.
    """
    adapter, network = _find_network(slug, request)
    try:
        _require_allowed_sender(network, request)
        event, user = verify(adapter, network, request, now=now)
    except PostbackPostponed as reason:
        logger.error("a postback of %s is postponed: %s", slug, reason)
        return adapter.answers.retry
    except PostbackRefused as reason:
        logger.warning("a postback of %s is refused: %s", slug, reason)
        is_known = isinstance(reason, MacroNotReplaced)
        return adapter.answers.reject.because(reason) if is_known else adapter.answers.reject
    record(
        VerifiedEvent(
            network=network,
            event=event,
            user=user,
            raw=_raw(adapter, request),
            received_at=now,
            headers=dict(request.headers),
            request_id=request_id,
        )
    )
    return adapter.answers.ok.about(event)


def _find_network(slug: str, request: RawRequest) -> tuple[Adapter, AdNetwork]:
    adapter = ADAPTERS.get(slug)
    network = AdNetwork.objects.filter(slug=slug, is_enabled=True).first()
    if adapter is None or network is None or request.method not in adapter.methods:
        raise NotFound("There is nothing at this address.")
    if adapter.has_path_token and not networks.has_path_token(network, request.path_token):
        raise NotFound("There is nothing at this address.")
    return adapter, network


def _require_allowed_sender(network: AdNetwork, request: RawRequest) -> None:
    if network.allowed_addresses and not is_within(request.sender, network.allowed_addresses):
        raise PostbackRefused("the sender's address is not in the list")


def verify(
    adapter: Adapter, network: AdNetwork, request: RawRequest, *, now: datetime
) -> tuple[PostbackEvent, User | None]:
    """
    Return the event and its user, after verifying signature and time. Nothing is stored.

    Raises:
        PostbackRefused: the network did not send this, or it cannot be accepted.
        PostbackPostponed: it cannot be verified now.
    """
    keys = {} if adapter.needs_secret else _verifier_keys(adapter.slug, now=now)
    fields = adapter.verify(request, secrets=_secrets(network), keys=keys)
    event = adapter.parse(fields)
    check_freshness(adapter, event, now=now)
    if adapter.signs_for_all and event.is_about_credits and event.ad_unit not in network.allowed_ad_units:
        raise PostbackRefused("the ad unit is not in the list")
    user = networks.user_of_reference(network=network, reference=event.user_ref)
    return event, user


def _secrets(network: AdNetwork) -> list[str]:
    try:
        return networks.live_secrets(network)
    except SealedUnderAnotherKey as error:
        raise PostbackPostponed("no key in AD_NETWORK_SECRET_KEYS decrypts a secret") from error


def _verifier_keys(slug: str, *, now: datetime) -> dict[str, str]:
    oldest = now - networks.MAX_VERIFIER_KEY_AGE
    key_set = VerifierKeySet.objects.filter(slug=slug, fetched_at__gt=oldest).first()
    return key_set.keys if key_set else {}


def _raw(adapter: Adapter, request: RawRequest) -> bytes:
    """Return the data to store: the query or the body; for a signed path its content without the signature."""
    if not adapter.has_path_token:
        return request.path_token.partition(".")[0].encode()
    return request.body or request.query


def payload_hash(event: PostbackEvent) -> str:
    """Return the SHA-256 of the event's content, without times and signatures, which differ between repeats."""
    payout = "" if event.payout_usd is None else f"{event.payout_usd.normalize():f}"
    amount = f"{event.amount.normalize():f}"
    values = [event.kind, event.external_id, event.original_id, event.user_ref, amount, payout]
    return hashlib.sha256("\n".join(values).encode(errors="surrogateescape")).hexdigest()


@dataclass(frozen=True, kw_only=True)
class VerifiedEvent:
    """A verified event, with the request's data."""

    network: AdNetwork
    event: PostbackEvent
    user: User | None
    raw: bytes
    received_at: datetime
    headers: dict[str, str] = field(default_factory=dict)
    request_id: str = ""

    @property
    def payload_hash(self) -> str:
        return payload_hash(self.event)

    @property
    def _names_nobody(self) -> bool:
        return self.user is None and self.event.kind in {PostbackKind.CREDIT, PostbackKind.REVERSAL}

    def to_row(self) -> Postback:
        event = self.event
        return Postback(
            network=self.network,
            external_id=event.external_id,
            kind=event.kind,
            original_id=event.original_id,
            user=self.user,
            state=PostbackState.UNASSIGNED if self._names_nobody else PostbackState.RECEIVED,
            amount=event.amount,
            takes_back=event.takes_back,
            payout_usd=event.payout_usd,
            rate=self.network.rate,
            occurred_at=event.occurred_at,
            received_at=self.received_at,
            raw=self.raw,
            headers=self.headers,
            payload_hash=self.payload_hash,
            request_id=self.request_id,
        )


@transaction.atomic(durable=True)
def record(verified: VerifiedEvent) -> bool:
    """Store an event with all its effects; return False for a repeat, which changes nothing."""
    postback = verified.to_row()
    if not _insert(postback) and not (_differs_from_first(verified) and _replace_unassigned(postback)):
        return False
    earnings.decide(postback, verified.user)
    return True


_COLUMNS = [column for column in Postback._meta.concrete_fields if not column.primary_key]
_INSERT = f"""
INSERT INTO earnings_postback ({", ".join(column.attname for column in _COLUMNS)})
VALUES ({", ".join(f"%({column.attname})s" for column in _COLUMNS)})
ON CONFLICT DO NOTHING
RETURNING id
"""  # noqa: S608 (names of our own columns)


def _insert(postback: Postback) -> bool:
    """Store the row by its unique key; return False where it exists. Waits for a concurrent insert."""
    values = {
        column.attname: column.get_db_prep_save(getattr(postback, column.attname), connection)
        for column in _COLUMNS
    }
    row = db.first_row(_INSERT, values)
    if row is None:
        return False
    postback.pk = row[0]
    return True


def _replace_unassigned(repeat: Postback) -> bool:
    """Replace a first report that named no user by a repeat that names its user; return whether there was one."""
    first = Postback.objects.select_for_update().filter(
        network=repeat.network,
        external_id=repeat.external_id,
        kind=repeat.kind,
        state=PostbackState.UNASSIGNED,
    )
    if repeat.user_id is None or (row := first.first()) is None:
        return False
    repeat.pk = row.pk
    repeat.save(force_update=True)
    return True


def _differs_from_first(repeat: VerifiedEvent) -> bool:
    event = repeat.event
    first = Postback.objects.filter(network=repeat.network, external_id=event.external_id, kind=event.kind)
    if event.kind == PostbackKind.REVERSAL:
        first = first.filter(user=repeat.user)
    different = first.exclude(payload_hash=repeat.payload_hash)
    if different.update(is_conflicting=True, conflicted_at=repeat.received_at):
        logger.error("CONFLICTING_DUPLICATE: %s reports two things of %s", repeat.network, event.external_id)
        return True
    return False


def purge(*, now: datetime) -> int:
    """
    Delete old rows without a credit; return how many.

    A repeat of such a row is stored again and credits no user, as before: the row of
    its credit, if there is one, is kept and decides.
    """
    old = Postback.objects.filter(
        WORTHLESS, entry=None, received_at__lt=now - timedelta(days=_KEPT_DAYS)
    ).order_by("received_at")
    deleted = 0
    while ids := list(old.values_list("pk", flat=True)[:PURGE_BATCH]):
        deleted += Postback.objects.filter(pk__in=ids).delete()[0]
    return deleted
