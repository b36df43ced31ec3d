"""Reading the rows of the relay. Nothing here writes."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Count, QuerySet

from gateway.admin.pauses import is_paused_sql
from gateway.chain.config import get_chain
from gateway.common import db
from relay.errors import ProfileNotRegistered, TransactionNotFound
from relay.models import Attempt, Relayer, RelayTransaction, sql_values
from users.models import User

# The name under which staff pause the whole relay.
RELAY = "relay"
_STATUS = RelayTransaction.Status
_IN_PROGRESS = sql_values(*RelayTransaction.IN_PROGRESS)
_ACTIVE = sql_values(*RelayTransaction.ACTIVE)


def registered_owner(profile_address: str) -> User:
    """
    Return the active user of a profile, given in EIP-55 text.

    Raises:
        ProfileNotRegistered: the profile has never signed in here, or support has closed its account.
    """
    user = User.objects.filter(profile_address=profile_address, is_active=True).first()
    if user is None:
        raise ProfileNotRegistered(f"{profile_address} has never signed in here.", profile=profile_address)
    return user


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes two requests the same relay call: the LSP-25 digest and who signed it."""

    digest: str
    controller: str


class CallHistory(NamedTuple):
    """What the rows say of a relay call before the node is asked."""

    # The hash of the user's call of this identity that is in progress or executed, if any.
    transaction_hash: str | None
    # The number of the next try of this identity; 0 for the first.
    generation: int
    # How many tries of this identity have failed on chain, which makes its signature public.
    failures: int
    # Staff have paused the whole relay.
    is_paused: bool


def call_history(*, user: User, identity: Identity) -> CallHistory:
    """Return the earlier tries of this call, read in one statement."""
    params = {
        "chain": get_chain().id,
        "user": user.pk,
        "digest": identity.digest,
        "controller": identity.controller,
    }
    return CallHistory(*db.only_row(_CALL_HISTORY, params))


_CALL_HISTORY = f"""
SELECT (SELECT transaction_hash FROM relay_relaytransaction
        WHERE chain_id = %(chain)s AND digest = %(digest)s AND controller_address = %(controller)s
          AND user_id = %(user)s AND status IN {_ACTIVE} ORDER BY id LIMIT 1),
       (SELECT coalesce(max(generation) + 1, 0) FROM relay_relaytransaction
        WHERE chain_id = %(chain)s AND digest = %(digest)s AND controller_address = %(controller)s),
       (SELECT count(*) FROM relay_relaytransaction
        WHERE chain_id = %(chain)s AND digest = %(digest)s AND controller_address = %(controller)s
          AND status = '{_STATUS.FAILED}'),
       {is_paused_sql(RELAY)}
"""  # noqa: S608 - constants of our own


def active_transaction(*, user: User, identity: Identity) -> RelayTransaction | None:
    """Return the user's relay transaction of this identity that is in progress or executed, if any."""
    return (
        RelayTransaction.objects.active()
        .filter(
            chain_id=get_chain().id,
            user_id=user.pk,
            digest=identity.digest,
            controller_address=identity.controller,
        )
        .first()
    )


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
    Report on the user's relay transaction that has an attempt with this hash.

    Until it is settled the figures are the expected cost and the balance at
    acceptance; afterwards they are the ledger entry's own.

    Raises:
        TransactionNotFound: no such transaction of this user.
    """
    transaction = (
        RelayTransaction.objects.select_related("hold__entry")
        .filter(
            user_id=user.pk,
            attempts__chain_id=get_chain().id,
            attempts__transaction_hash=transaction_hash.lower(),
        )
        .first()
    )
    if transaction is None:
        raise TransactionNotFound("The signed-in profile has no relay transaction with this hash.")
    used, before, after = credits_of(transaction)
    return TransactionReport(transaction.status, transaction.profile_address, used, before, after)


def transactions_of(user: User) -> QuerySet[RelayTransaction]:
    """
    Return the user's relay transactions, each with the ledger entry that `credits_of` reads.

    Payload and signature are not read: they may be long.
    """
    shown = ("profile_address", "transaction_hash", "status", "created_at", "settled_at")
    costs = ("expected_cost", "real_cost", "credits_before")
    entry = ("amount", "balance_before", "balance_after")
    transactions = RelayTransaction.objects.filter(user_id=user.pk).select_related("hold__entry")
    return transactions.only(*shown, *costs, *(f"hold__entry__{name}" for name in entry))


def credits_of(transaction: RelayTransaction) -> tuple[int, int, int]:
    """Return the credits that a transaction uses, and the balance before and after it."""
    entry = transaction.hold.entry
    if entry is not None:
        return -entry.amount, entry.balance_before, entry.balance_after
    used = transaction.expected_cost if transaction.is_in_progress else 0
    return used, transaction.credits_before, transaction.credits_before - used


class Figures(NamedTuple):
    """The state of the relay as of one moment. Ages are in seconds, 0 where nothing waits."""

    pending: int
    submitted: int
    # Since the oldest call in progress was accepted.
    oldest_age: float
    # Since the oldest attempt that was never sent was signed.
    unsent_age: float
    # Since the oldest call without a mined attempt was first sent, however often it was replaced.
    unmined_age: float


def figures() -> Figures:
    """Return the state of the relay, in one statement that reads only what is in progress."""
    return Figures(*db.only_row(_FIGURES, {}))


_FIGURES = f"""
WITH call AS MATERIALIZED (
    SELECT id, status, created_at FROM relay_relaytransaction WHERE status IN {_IN_PROGRESS}
), attempt AS MATERIALIZED (
    SELECT attempt.relay_transaction_id AS call_id, attempt.status, attempt.created_at, attempt.first_sent_at
    FROM call JOIN relay_attempt AS attempt ON attempt.relay_transaction_id = call.id
), oldest AS (
    SELECT (SELECT min(created_at) FROM call) AS accepted_at,
           (SELECT min(created_at) FROM attempt WHERE status = '{Attempt.Status.SIGNED}') AS signed_at,
           (SELECT min(first_sent_at) FROM attempt
            WHERE call_id NOT IN (SELECT call_id FROM attempt WHERE status = '{Attempt.Status.MINED}')) AS sent_at
)
SELECT (SELECT count(*) FROM call WHERE status = '{_STATUS.PENDING}'),
       (SELECT count(*) FROM call WHERE status = '{_STATUS.SUBMITTED}'),
       coalesce(greatest(0, extract(epoch FROM statement_timestamp() - accepted_at)), 0)::float,
       coalesce(greatest(0, extract(epoch FROM statement_timestamp() - signed_at)), 0)::float,
       coalesce(greatest(0, extract(epoch FROM statement_timestamp() - sent_at)), 0)::float
FROM oldest
"""  # noqa: S608 - constants of our own

# Longer than any call takes to end by itself. Calls are indexed by when they were accepted, not by when they ended.
_LONGEST = timedelta(days=1)


def ended(*, since: datetime) -> dict[str, int]:
    """Return how many calls have ended since then, by final status, including those with 0."""
    settled = RelayTransaction.objects.filter(created_at__gte=since - _LONGEST, settled_at__gte=since)
    counts = dict(settled.values_list("status").annotate(Count("id")).order_by("status"))
    final = set(RelayTransaction.Status) - set(RelayTransaction.IN_PROGRESS)
    return {status.value: counts.get(status.value, 0) for status in sorted(final)}


def relayers() -> list[Relayer]:
    """Return every relayer."""
    return list(Relayer.objects.order_by("pk"))
