"""Reading the rows of the relay. Nothing here writes."""

import itertools
import json
from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple, Protocol, cast
from uuid import UUID

from django.conf import settings
from django.db.models import Count, F, QuerySet

from credits.queries import PERIOD_COLUMNS, PaidPeriod, period_from
from gateway.chain.config import get_chain
from gateway.common import db
from gateway.staff.pauses import is_paused_sql
from relay.errors import ProfileNotRegistered, TransactionNotFound
from relay.models import (
    ACTIVE_SQL,
    CALLERS_DOING,
    IN_PROGRESS_SQL,
    Attempt,
    Relayer,
    RelayTransaction,
    TopUp,
    Treasury,
    current_chain_id,
    sql_values,
)
from rewards.queries import badge_debt
from users.models import User
from users.queries import SESSION_STATE, TRUSTED_CODES, require_active_state, session_state

# The name under which staff pause the whole relay.
RELAY = "relay"
_STATUS = RelayTransaction.Status
_UNSUCCESSFUL = sql_values(*RelayTransaction.UNSUCCESSFUL)


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
    """The identity of a relay call: its LSP-25 digest and the controller that signed it."""

    digest: str
    controller: str


class QuotedTerms(NamedTuple):
    """The terms of one of the caller's quotes."""

    digest: str
    credits: int
    gas_limit: int
    max_fee_per_gas_wei: int
    expires_at: datetime
    is_used: bool


class CallRows(NamedTuple):
    """Everything that the rows hold about a relay call, read before the node."""

    # The state of the caller's session; see `users.queries.session_state`.
    session_state: str | None
    # The hash of the user's call of this identity that is in progress or executed, if any.
    transaction_hash: str | None
    # The next generation of this identity; 0 for the first call.
    generation: int
    # How many generations of this identity have failed on chain, which makes its signature public.
    failures: int
    # Whether staff have paused the whole relay.
    is_paused: bool
    # Where the user's calls without effect reach the hourly or daily limit: when the oldest of them ended.
    hourly_limit_since: datetime | None
    daily_limit_since: datetime | None
    # Credits that the user's badges allow to owe; `credits_debt_limit` lowers it where a hold needs debt.
    badge_debt: int
    # The trusted codes, as `users.queries.TRUSTED_CODES` names them.
    trusted_codes: frozenset[str]
    # Whether the call's key manager is that of the user's newest relay call, which was verified to be the profile's.
    is_pair_known: bool
    # The quote submitted with the call, if the user has a quote with this id.
    quote: QuotedTerms | None


class CallKey(NamedTuple):
    """A relay call's identity and key manager, with the user and session that submit it."""

    identity: Identity
    key_manager: str
    user_id: int
    session_id: UUID | None
    now: datetime
    quote_id: UUID | None = None


def rows_of_calls(keys: Sequence[CallKey]) -> list[CallRows]:
    """Return the rows of each call, read in one statement."""
    calls = [
        {
            "place": place,
            "user_id": key.user_id,
            "session_id": key.session_id and str(key.session_id),
            "digest": key.identity.digest,
            "controller": key.identity.controller,
            "key_manager": key.key_manager,
            "quote": key.quote_id and str(key.quote_id),
            "now": key.now.isoformat(),
        }
        for place, key in enumerate(keys)
    ]
    params = {
        "calls": json.dumps(calls),
        "chain": get_chain().id,
        "per_hour": settings.RELAY_CANCELLED_CALLS_PER_HOUR,
        "per_day": settings.RELAY_CANCELLED_CALLS_PER_DAY,
    }
    return [_call_rows(row) for row in db.all_rows(_CALL_ROWS, params)]


def _call_rows(row: tuple[Any, ...]) -> CallRows:
    *columns, codes, is_pair_known, digest, quoted, gas_limit, max_fee, expires_at, is_used = row
    quote = digest and QuotedTerms(digest, quoted, gas_limit, int(max_fee), expires_at, is_used)
    return CallRows._make([*columns, frozenset(codes), bool(is_pair_known), quote])


# Calls that were cancelled by staff, or because of an unfunded relayer or a lost account nonce, do not count: the
# caller did not cause them.
_CALL_ROWS = f"""
SELECT {session_state(user="call.user_id", session="call.session_id", now="call.now")},
       earlier.transaction_hash, earlier.generation, earlier.failures, {is_paused_sql(RELAY)},
       (SELECT settled_at FROM relay_relaytransaction AS ended
        WHERE ended.user_id = call.user_id AND ended.settled_at > call.now - interval '1 hour'
          AND ended.status IN {_UNSUCCESSFUL}
          AND {CALLERS_DOING}
        ORDER BY settled_at DESC OFFSET %(per_hour)s - 1 LIMIT 1),
       (SELECT settled_at FROM relay_relaytransaction AS ended
        WHERE ended.user_id = call.user_id AND ended.settled_at > call.now - interval '1 day'
          AND ended.status IN {_UNSUCCESSFUL}
          AND {CALLERS_DOING}
        ORDER BY settled_at DESC OFFSET %(per_day)s - 1 LIMIT 1),
       ({badge_debt(user="call.user_id", now="call.now")}), trusted.codes,
       (SELECT key_manager_address FROM relay_relaytransaction AS newest
        WHERE newest.user_id = call.user_id AND newest.chain_id = %(chain)s
        ORDER BY newest.id DESC LIMIT 1) = call.key_manager,
       quote.digest, quote.credits, quote.gas_limit, quote.max_fee_per_gas_wei, quote.expires_at,
       quote.used_at IS NOT NULL
FROM jsonb_to_recordset(%(calls)s::jsonb) AS call (
    place integer, user_id bigint, session_id uuid, digest text, controller text, key_manager text, quote uuid,
    now timestamptz
)
CROSS JOIN ({TRUSTED_CODES}) AS trusted (codes)
LEFT JOIN LATERAL (
    SELECT max(transaction_hash) FILTER (WHERE user_id = call.user_id AND status IN {ACTIVE_SQL}) AS transaction_hash,
           coalesce(max(generation) + 1, 0) AS generation,
           count(*) FILTER (WHERE status = '{_STATUS.FAILED}') AS failures
    FROM relay_relaytransaction
    WHERE chain_id = %(chain)s AND digest = call.digest AND controller_address = call.controller
) AS earlier ON true
LEFT JOIN relay_quote AS quote
       ON quote.id = call.quote AND quote.user_id = call.user_id AND quote.chain_id = %(chain)s
ORDER BY call.place
"""  # noqa: S608 - constants of our own


def active_transaction(*, user_id: int, identity: Identity) -> RelayTransaction | None:
    """Return the user's relay transaction of this identity that is in progress or executed, if any."""
    return (
        RelayTransaction.objects.active()
        .filter(
            chain_id=get_chain().id,
            user_id=user_id,
            digest=identity.digest,
            controller_address=identity.controller,
        )
        .first()
    )


def controller_of_session(*, user_id: int, session_id: UUID | None, now: datetime) -> str | None:
    """
    Return the controller that signed in; None for a token of an external issuer.

    Raises:
        SessionEnded, AccountInactive: the session or the account has ended.
    """
    params = {"user": user_id, "session": session_id, "now": now}
    state, controller = db.only_row(_CONTROLLER_OF_SESSION, params)
    require_active_state(state)
    return None if controller is None else str(controller)


_CONTROLLER_OF_SESSION = f"""
SELECT {SESSION_STATE},
       (SELECT controller_address FROM users_signinsession WHERE id = CAST(%(session)s AS uuid))
"""  # noqa: S608 - constants of our own


def next_relay_nonce(*, key_manager: str, controller: str, chain_nonce: int) -> int:
    """Return the relay nonce after the calls in progress; `chain_nonce` is the nonce that the chain expects next."""
    taken = set(
        RelayTransaction.objects.active()
        .of_channel(
            chain_id=get_chain().id,
            key_manager=key_manager,
            controller=controller,
            channel=chain_nonce >> 128,
        )
        .filter(relay_nonce__gte=chain_nonce, terminal_status="")
        .values_list("relay_nonce", flat=True)
    )
    return next(nonce for nonce in itertools.count(chain_nonce) if nonce not in taken)


class QuotaRows(NamedTuple):
    """Available credits and the paid period; 0 and None without rows."""

    available: int
    period: PaidPeriod | None


def rows_of_quota(*, user_id: int, session_id: UUID | None, now: datetime) -> QuotaRows:
    """
    Return a user's available credits and paid period, read in one statement.

    Raises:
        SessionEnded, AccountInactive: the session or the account has ended.
    """
    params = {"user": user_id, "session": session_id, "now": now}
    state, available, *period = db.only_row(_QUOTA_ROWS, params)
    require_active_state(state)
    return QuotaRows(available, period_from(period))


_QUOTA_ROWS = f"""
SELECT {SESSION_STATE}, coalesce(account.balance - account.held, 0), {PERIOD_COLUMNS}
FROM (SELECT) AS always
LEFT JOIN credits_account AS account ON account.user_id = %(user)s
LEFT JOIN credits_allowance AS allowance ON allowance.user_id = %(user)s
"""  # noqa: S608 - constants of our own


@dataclass(frozen=True, slots=True)
class TransactionReport:
    """The status record of a relay transaction. Costs and balances in credits."""

    id: int
    status: str
    sender_address: str
    credits_used: int
    credits_before: int
    credits_after: int
    # Why it ended without success, and a sentence for its owner; empty in progress and after a success.
    failure_code: str = ""
    failure_detail: str = ""

    @property
    def is_in_progress(self) -> bool:
        """Whether the outcome is not confirmed yet."""
        return self.status in RelayTransaction.IN_PROGRESS


def transaction_report(
    *, user_id: int, session_id: UUID | None, transaction_hash: str, now: datetime
) -> TransactionReport:
    """
    Report on the user's relay transaction that has an attempt with this hash, in one statement.

    Until it is settled, the credits are the expected cost and the balance at
    acceptance; afterwards they come from the ledger entry.

    Raises:
        SessionEnded, AccountInactive: the session or the account has ended.
        TransactionNotFound: the user has no transaction with this hash.
    """
    params = {
        "user": user_id,
        "session": session_id,
        "now": now,
        "chain": get_chain().id,
        "hash": transaction_hash.lower(),
    }
    state, *columns = db.only_row(_REPORT, params)
    require_active_state(state)
    if columns[0] is None:
        raise TransactionNotFound("The signed-in profile has no relay transaction with this hash.")
    return _report_of(*columns)


def _report_of(
    row_id: int,
    status: str,
    sender: str,
    code: str,
    detail: str,
    expected_cost: int,
    before: int,
    *entry: Any,
) -> TransactionReport:
    posted = None if entry[0] is None else tuple(entry)
    used, before, after = _credits_of(status, expected_cost, before, posted)
    # A call that is being cancelled has its reason already, and may still succeed.
    failure = ("", "") if status in RelayTransaction.IN_PROGRESS else (code, _FAILURES.get(code, detail))
    return TransactionReport(row_id, status, sender, used, before, after, *failure)


# Where the stored detail is for staff: it has the words of a node or of our accounts.
_FAILURES = {
    "refused-by-node": "The network did not take the transaction. Nothing was charged; send the call again.",
    "account-nonce-lost": "A fault of the service stopped the transaction. Nothing was charged; send the call again.",
}


def changed_reports(shown: Set[tuple[int, str]]) -> dict[tuple[int, str], TransactionReport]:
    """Return reports on those of the shown relay transactions whose status has changed since."""
    # Arrays are passed as text: adapting a list takes the driver longer than the statement takes PostgreSQL.
    ids, statuses = ("{" + ",".join(map(str, column)) + "}" for column in zip(*shown, strict=True))
    rows = db.all_rows(_CHANGED, {"ids": ids, "statuses": statuses})
    return {(row[1], row[0]): _report_of(*row[1:]) for row in rows}


_REPORT_COLUMNS = """
call.id, call.status, call.profile_address, call.failure_code, call.failure_detail,
call.expected_cost, call.credits_before,
entry.amount, entry.balance_before, entry.balance_after
"""

_REPORT = f"""
SELECT {SESSION_STATE}, {_REPORT_COLUMNS}
FROM (SELECT) AS always
LEFT JOIN (relay_attempt AS attempt JOIN relay_relaytransaction AS call ON call.id = attempt.relay_transaction_id)
       ON attempt.chain_id = %(chain)s AND attempt.transaction_hash = %(hash)s AND call.user_id = %(user)s
LEFT JOIN credits_hold AS hold ON hold.id = call.hold_id
LEFT JOIN credits_entry AS entry ON entry.id = hold.entry_id
"""  # noqa: S608 - constants of our own


_CHANGED = f"""
SELECT shown.status, {_REPORT_COLUMNS}
FROM unnest(%(ids)s::bigint[], %(statuses)s::text[]) AS shown (id, status)
JOIN relay_relaytransaction AS call ON call.id = shown.id AND call.status <> shown.status
LEFT JOIN credits_hold AS hold ON hold.id = call.hold_id
LEFT JOIN credits_entry AS entry ON entry.id = hold.entry_id
"""  # noqa: S608 - constants of our own


class ListedTransaction(Protocol):
    """A row of `transactions_of`."""

    id: int
    profile_address: str
    transaction_hash: str
    status: str
    expected_cost: int
    real_cost: int
    credits_before: int
    created_at: datetime
    settled_at: datetime | None
    failure_code: str
    # Of the ledger entry, None before there is one.
    amount: int | None
    balance_before: int | None
    balance_after: int | None


def transactions_of(user: User) -> QuerySet[RelayTransaction, ListedTransaction]:
    """
    Return the user's relay transactions, each with the columns of its ledger entry that `credits_of` reads.

    Rows without the long columns: model instances would be three objects for each transaction.
    """
    shown = (
        "id",
        "profile_address",
        "transaction_hash",
        "status",
        "created_at",
        "settled_at",
        "failure_code",
    )
    costs = ("expected_cost", "real_cost", "credits_before")
    entry = {name: F(f"hold__entry__{name}") for name in ("amount", "balance_before", "balance_after")}
    transactions = RelayTransaction.objects.filter(user_id=user.pk).annotate(**entry)
    return cast(
        "QuerySet[RelayTransaction, ListedTransaction]",
        transactions.values_list(*shown, *costs, *entry, named=True),
    )


def credits_of(row: ListedTransaction) -> tuple[int, int, int]:
    """Return the credits that a transaction uses, and the balance before and after it."""
    posted = None
    if row.amount is not None and row.balance_before is not None and row.balance_after is not None:
        posted = row.amount, row.balance_before, row.balance_after
    return _credits_of(row.status, row.expected_cost, row.credits_before, posted)


def _credits_of(
    status: str, expected_cost: int, credits_before: int, entry: tuple[int, int, int] | None
) -> tuple[int, int, int]:
    """Return credits used, balance before and after; `entry` is the posted ledger entry, if any."""
    if entry is not None:
        amount, before, after = entry
        return -amount, before, after
    used = expected_cost if status in RelayTransaction.IN_PROGRESS else 0
    return used, credits_before, credits_before - used


class RelayCounts(NamedTuple):
    """A snapshot of the relay. Ages are in seconds, 0 where no call waits."""

    pending: int
    submitted: int
    # Of the oldest call in progress, since it was accepted.
    oldest_age: float
    # Of the oldest attempt that was never sent, since it was signed.
    unsent_age: float
    # Of the oldest call without a mined attempt, since its first broadcast; replacements do not reset it.
    unmined_age: float


def relay_counts() -> RelayCounts:
    """Return the snapshot in one statement, which reads only calls in progress."""
    return RelayCounts(*db.only_row(_COUNTS, {}))


_COUNTS = f"""
WITH call AS MATERIALIZED (
    SELECT id, status, created_at FROM relay_relaytransaction WHERE status IN {IN_PROGRESS_SQL}
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

# Longer than any call takes to end. Calls are indexed by the time of acceptance, not of settlement.
_LONGEST = timedelta(days=1)


def ended(*, since: datetime) -> dict[str, int]:
    """Return the number of calls that ended since `since`, by final status, including statuses with 0."""
    settled = RelayTransaction.objects.filter(created_at__gte=since - _LONGEST, settled_at__gte=since)
    counts = dict(settled.values_list("status").annotate(Count("id")).order_by("status"))
    final = set(RelayTransaction.Status) - set(RelayTransaction.IN_PROGRESS)
    return {status.value: counts.get(status.value, 0) for status in sorted(final)}


def relayers() -> list[Relayer]:
    """Return every relayer that is not retired."""
    return list(Relayer.objects.filter(retired_at__isnull=True).order_by("pk"))


def treasuries() -> list[Treasury]:
    """Return the accounts that fund relayers, one for each chain."""
    return list(Treasury.objects.order_by("pk"))


def top_ups(*, since: datetime) -> tuple[int, float]:
    """
    Return the wei that the treasury has sent since `since`, and the age of the transfer in flight in seconds.

    The age counts from the first transfer on its account nonce; replacements do not reset it. It is 0 without one.
    """
    paid_wei, age = db.only_row(_TOP_UPS, {"chain": current_chain_id(), "since": since})
    return int(paid_wei), float(age)


_TOP_UPS = f"""
SELECT (SELECT coalesce(sum(amount_wei), 0) FROM relay_topup
        WHERE chain_id = %(chain)s AND created_at >= %(since)s
          AND status IN {sql_values(TopUp.Status.SENT, TopUp.Status.MINED)}),
       (SELECT coalesce(greatest(0, extract(epoch FROM statement_timestamp() - min(first.created_at))), 0)::float
        FROM relay_topup AS sent JOIN relay_topup AS first USING (chain_id, treasury_address, account_nonce)
        WHERE sent.chain_id = %(chain)s AND sent.status = '{TopUp.Status.SENT}')
"""  # noqa: S608 - constants of our own


class Spending(NamedTuple):
    """What calls cost: typically, and this user's of each UTC day with any."""

    # The median of the newest settled calls of all users, in credits; None before there are any.
    typical_cost: int | None
    days: list[tuple[date, int]]


# Enough calls for a median, and for a month of one user; more would make a page slow.
_TYPICAL_CALLS, _CALLS_OF_USER, SPENDING_DAYS = 200, 5_000, 30


def spending_of(*, user: User, now: datetime) -> Spending:
    """Return the typical cost of a call, and what the user's newest calls of a month cost; two statements."""
    typical = db.only_row(_TYPICAL_COST, {"calls": _TYPICAL_CALLS})[0]
    since = now - timedelta(days=SPENDING_DAYS - 1)
    params = {"user": user.pk, "since": since.astimezone(UTC).date(), "calls": _CALLS_OF_USER}
    return Spending(None if typical is None else round(typical), db.all_rows(_SPENT_BY_DAY, params))


_TYPICAL_COST = f"""
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY real_cost)::float
FROM (SELECT real_cost, status FROM relay_relaytransaction ORDER BY id DESC LIMIT %(calls)s) AS newest
WHERE status = '{_STATUS.SUCCESS}' AND real_cost > 0
"""  # noqa: S608 - constants of our own
_SPENT_BY_DAY = """
SELECT (settled_at AT TIME ZONE 'UTC')::date AS day, sum(real_cost)::bigint
FROM (SELECT settled_at, real_cost FROM relay_relaytransaction
      WHERE user_id = %(user)s ORDER BY id DESC LIMIT %(calls)s) AS newest
WHERE real_cost > 0 AND (settled_at AT TIME ZONE 'UTC')::date >= %(since)s
GROUP BY day ORDER BY day
"""
