"""
A postback from the network's request to its row, in a fixed order of checks.

Network enabled → path token → address list → signature → freshness → form → user → row → decision (`earnings`).
A request that fails the first two gets the same 404 as a wrong path; later failures get the response that its network
expects.
"""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import transaction

from earnings.models import WORTHLESS, AdNetwork, Postback, PostbackKind, PostbackState, VerifierKeySet
from earnings.networks import ADAPTERS
from earnings.networks.base import (
    Adapter,
    MacroNotReplaced,
    PostbackEvent,
    PostbackPostponed,
    PostbackRefused,
    PostbackResponse,
    RawRequest,
    check_freshness,
)
from earnings.services import earnings, networks
from earnings.services.books import arrays, unnested
from gateway.common import db
from gateway.common.crypto import SealedUnderAnotherKey
from gateway.common.errors import NotFound
from gateway.common.http import is_within
from gateway.common.statements import Statements
from users.models import User

logger = logging.getLogger(__name__)
# Rows to delete in one transaction; short transactions do not delay arriving postbacks.
PURGE_BATCH = 2_000
# Retention of postbacks without credits. Networks retry a postback for nine days.
_KEPT_DAYS = 400


def receive(*, slug: str, request: RawRequest, now: datetime, request_id: str = "") -> PostbackResponse:
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
        return adapter.responses.retry
    except PostbackRefused as reason:
        logger.warning("a postback of %s is refused: %s", slug, reason)
        is_known = isinstance(reason, MacroNotReplaced)
        return adapter.responses.reject.because(reason) if is_known else adapter.responses.reject
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
    return adapter.responses.ok.about(event)


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


def record(verified: VerifiedEvent) -> bool:
    """Store an event with all its effects; return False for a repeat, which changes nothing."""
    return record_all([verified]) == 1


@transaction.atomic(durable=True)
def record_all(batch: Sequence[VerifiedEvent]) -> int:
    """
    Store events of one network and time with all their effects, in order; return how many are new.

    A repeat changes nothing.
    """
    if len(batch) > 1:
        # Serialises batches of a network: two with the same events in different orders would deadlock.
        AdNetwork.objects.select_for_update(no_key=True).get(pk=batch[0].network.pk)
    rows = [verified.to_row() for verified in batch]
    _insert(rows)
    if repeats := [row for row in rows if row.pk is None]:
        _compare_with_first(repeats)
    fresh = [row for row in rows if row.pk is not None]
    if fresh:
        earnings.decide_all(fresh)
    return len(fresh)


def _compare_with_first(repeats: Sequence[Postback]) -> None:
    """Mark the rows whose repeat has other content; replace those that named no user by a repeat that does."""
    params = {
        "network": repeats[0].network.pk,
        "at": repeats[0].received_at,
        "ids": [row.external_id for row in repeats],
        "kinds": [str(row.kind) for row in repeats],
        "users": [row.user_id for row in repeats],
        "hashes": [row.payload_hash for row in repeats],
    }
    conflicting = set(db.all_rows(_Sql.mark, params))
    for row in repeats:
        if (row.external_id, row.kind) in conflicting:
            logger.error("CONFLICTING_DUPLICATE: %s reports two things of %s", row.network, row.external_id)
            _replace_unassigned(row)


_FIELDS = [column for column in Postback._meta.concrete_fields if not column.primary_key]
_NAMES = ", ".join(field.attname for field in _FIELDS)


class _Sql(Statements, file=__file__, names=_NAMES, arrays=unnested(_FIELDS)):
    insert: str
    mark: str


def _insert(rows: Sequence[Postback]) -> None:
    """Store the rows by their unique keys; only new ones get their id. Waits for concurrent inserts."""
    new = {
        _key(id_, kind, user_id): pk
        for pk, id_, kind, user_id in db.all_rows(_Sql.insert, arrays(rows, _FIELDS))
    }
    for row in rows:
        row.pk = new.pop(_key(row.external_id, row.kind, row.user_id), None)


def _key(external_id: str, kind: str, user_id: int | None) -> tuple[str, str, int | None]:
    return external_id, str(kind), user_id if kind == PostbackKind.REVERSAL else None


def _replace_unassigned(repeat: Postback) -> None:
    """Replace a first report that named no user by a repeat that names its user; reversals have a row for each user."""
    first = Postback.objects.select_for_update().filter(
        network=repeat.network,
        external_id=repeat.external_id,
        kind=repeat.kind,
        state=PostbackState.UNASSIGNED,
    )
    is_named = repeat.user_id is not None and repeat.kind != PostbackKind.REVERSAL
    if is_named and (row := first.first()) is not None:
        repeat.pk = row.pk
        repeat.save(force_update=True)


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
