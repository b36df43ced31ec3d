"""What others ask about relaying. Nothing here writes."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.contrib.auth import get_user_model
from django.db.models import Count, QuerySet

from gateway.common import db
from relay.errors import ProfileNotRegistered, TransactionNotFound
from relay.models import Relayer, RelaySwitch, RelayTransaction
from users.models import User


def registered_owner(profile_address: str) -> User:
    """
    Return the active user of a profile, given in EIP-55 text.

    Raises:
        ProfileNotRegistered: the profile has never signed in here, or support has closed its account.
    """
    found = get_user_model().objects.filter(profile_address=profile_address, is_active=True).first()
    if found is None:
        raise ProfileNotRegistered(f"{profile_address} has never signed in here.", profile=profile_address)
    return found


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes two requests the same relay call: the LSP-25 digest and who signed it."""

    digest: str
    controller: str


class Known(NamedTuple):
    """What the records say of a relay call before the node is asked."""

    # The hash of the user's call of this identity that is in progress or executed, if any.
    transaction_hash: str | None
    # The number of the next try of this identity; 0 for the first.
    generation: int
    # How many tries of this identity have failed on chain, which makes its signature public.
    failures: int
    # Staff have paused the whole relay.
    is_paused: bool


def look_up(*, user: User, identity: Identity) -> Known:
    """Return what is known of this call, all of it as of one moment."""
    params = {"user": user.pk, "digest": identity.digest, "controller": identity.controller}
    return Known(*db.only_row(_KNOWN, params))


_KNOWN = """
SELECT (SELECT transaction_hash FROM relay_relaytransaction
        WHERE digest = %(digest)s AND controller_address = %(controller)s AND user_id = %(user)s
          AND status IN ('Pending', 'Submitted', 'Success', 'ExecutedExternally') ORDER BY id LIMIT 1),
       (SELECT coalesce(max(generation) + 1, 0) FROM relay_relaytransaction
        WHERE digest = %(digest)s AND controller_address = %(controller)s),
       (SELECT count(*) FROM relay_relaytransaction
        WHERE digest = %(digest)s AND controller_address = %(controller)s AND status = 'Failed'),
       coalesce((SELECT NOT is_open FROM relay_relayswitch ORDER BY id DESC LIMIT 1), false)
"""


def standing_transaction(*, user: User, identity: Identity) -> RelayTransaction | None:
    """Return the user's relay transaction of this identity that is in progress or executed, if any."""
    return (
        RelayTransaction.objects.standing()
        .filter(user_id=user.pk, digest=identity.digest, controller_address=identity.controller)
        .first()
    )


def is_paused() -> bool:
    """Return whether staff have paused the whole relay."""
    newest = RelaySwitch.objects.order_by("-id").first()
    return newest is not None and not newest.is_open


@dataclass(frozen=True, slots=True)
class TransactionReport:
    """The status record of a relay transaction. Costs and balances in credits."""

    status: str
    sender_address: str
    credits_used: int
    credits_before: int
    credits_after: int


def transaction_report(*, user: User, transaction_hash: str) -> TransactionReport:
    """
    Report on the user's relay transaction that one of its attempts' hashes names.

    Until it is settled the figures are the expected cost and the balance at
    acceptance; afterwards they are the ledger entry's own.

    Raises:
        TransactionNotFound: no such transaction of this user.
    """
    found = (
        RelayTransaction.objects.select_related("hold__entry")
        .filter(user_id=user.pk, attempts__transaction_hash=transaction_hash.lower())
        .first()
    )
    if found is None:
        raise TransactionNotFound("The signed-in profile has no relay transaction with this hash.")
    used, before, after = credits_of(found)
    return TransactionReport(found.status, found.profile_address, used, before, after)


def transactions_of(user: User) -> QuerySet[RelayTransaction]:
    """
    Return the user's relay transactions, each with the ledger entry that `credits_of` reads.

    Payload and signature are not read: they are as long as the caller liked.
    """
    shown = ("profile_address", "transaction_hash", "status", "created_at", "settled_at")
    costs = ("expected_cost", "real_cost", "credits_before")
    entry = ("amount", "balance_before", "balance_after")
    found = RelayTransaction.objects.filter(user_id=user.pk).select_related("hold__entry")
    return found.only(*shown, *costs, *(f"hold__entry__{name}" for name in entry))


def credits_of(found: RelayTransaction) -> tuple[int, int, int]:
    """Return the credits that a transaction uses, and the balance before and after it."""
    entry = found.hold.entry
    if entry is not None:
        return -entry.amount, entry.balance_before, entry.balance_after
    used = found.expected_cost if found.is_in_progress else 0
    return used, found.credits_before, found.credits_before - used


class Figures(NamedTuple):
    """How relaying stands, as of one moment. Ages are seconds, 0 where nothing waits."""

    pending: int
    submitted: int
    # Since the oldest call in progress was accepted.
    oldest_age: float
    # Since the oldest attempt that was never sent was signed.
    unsent_age: float
    # Since the oldest call without a mined attempt was first sent, however often it was replaced.
    unmined_age: float
    is_paused: bool


def figures() -> Figures:
    """Return how relaying stands, in one statement that reads what is in progress and nothing else."""
    return Figures(*db.only_row(_FIGURES, {}))


_FIGURES = """
WITH call AS MATERIALIZED (
    SELECT id, status, created_at FROM relay_relaytransaction WHERE status IN ('Pending', 'Submitted')
), attempt AS MATERIALIZED (
    SELECT attempt.relay_transaction_id AS call_id, attempt.status, attempt.created_at, attempt.first_sent_at
    FROM call JOIN relay_attempt AS attempt ON attempt.relay_transaction_id = call.id
), oldest AS (
    SELECT (SELECT min(created_at) FROM call) AS asked_at,
           (SELECT min(created_at) FROM attempt WHERE status = 'signed') AS signed_at,
           (SELECT min(first_sent_at) FROM attempt
            WHERE call_id NOT IN (SELECT call_id FROM attempt WHERE status = 'mined')) AS sent_at
)
SELECT (SELECT count(*) FROM call WHERE status = 'Pending'),
       (SELECT count(*) FROM call WHERE status = 'Submitted'),
       coalesce(greatest(0, extract(epoch FROM statement_timestamp() - asked_at)), 0)::float,
       coalesce(greatest(0, extract(epoch FROM statement_timestamp() - signed_at)), 0)::float,
       coalesce(greatest(0, extract(epoch FROM statement_timestamp() - sent_at)), 0)::float,
       coalesce((SELECT NOT is_open FROM relay_relayswitch ORDER BY id DESC LIMIT 1), false)
FROM oldest
"""

# Longer than any call takes to end by itself. Calls are indexed by when they were accepted, not by when they ended.
_LONGEST = timedelta(days=1)


def ended(*, since: datetime) -> dict[str, int]:
    """Return how many calls have ended since then, by final status, including those with 0."""
    found = RelayTransaction.objects.filter(created_at__gte=since - _LONGEST, settled_at__gte=since)
    counted = dict(found.values_list("status").annotate(Count("id")).order_by("status"))
    final = set(RelayTransaction.Status) - set(RelayTransaction.IN_PROGRESS)
    return {status.value: counted.get(status.value, 0) for status in sorted(final)}


def relayers() -> list[Relayer]:
    """Return every relayer."""
    return list(Relayer.objects.order_by("pk"))
