"""Reads of the ledger: balances, entries, the allowance of the paid period, and reconciliation runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import Min, QuerySet, Sum

from credits.models import (
    DISPROOFS,
    PROOFS,
    Allowance,
    CreditAccount,
    CreditEntry,
    EntrySource,
    ReconciliationRun,
)
from credits.rules import USE_PERIOD, daily_use
from gateway.common import db
from users.models import User


class Balance(NamedTuple):
    """Whole credits of a user; `available` is negative in debt."""

    balance: int
    held: int
    available: int


@dataclass(frozen=True, kw_only=True)
class AllowanceView:
    """Credits paid out for the current period, and the time of the next reset."""

    credits: int
    ends_at: datetime


def account_of(user: User) -> CreditAccount:
    """Return the user's account; an empty, unsaved one before it is opened."""
    return next(iter(CreditAccount.objects.filter(user_id=user.pk)), CreditAccount(user_id=user.pk))


def balance_of(user: User) -> Balance:
    """Return the user's credits; zeros before the account is opened."""
    account = account_of(user)
    return Balance(account.balance, account.held, account.available)


def earnings_of(account: CreditAccount) -> QuerySet[CreditEntry]:
    """Return every entry of the account except relay charges."""
    return CreditEntry.objects.filter(account_id=account.pk).exclude(source=EntrySource.RELAY_TRANSACTION)


_USE = (EntrySource.RELAY_TRANSACTION, EntrySource.RELAY_REVERSAL)


def daily_uses(user_ids: Iterable[int], *, now: datetime) -> dict[int, int]:
    """Return the credits that each of these users was recently charged per day."""
    charges = CreditEntry.objects.filter(
        account__user_id__in=list(user_ids), source__in=_USE, created_at__gte=now - USE_PERIOD
    )
    sums = charges.order_by().values("account__user_id").annotate(sum=Sum("amount"), first=Min("created_at"))
    rows = sums.values_list("account__user_id", "sum", "first")
    return {user_id: daily_use(charged=-total, since_first=now - first) for user_id, total, first in rows}


# Card renewals are collected 1-72 h after the period ends; the allowance continues until then.
RENEWAL_GRACE = timedelta(hours=72)


@dataclass(frozen=True, kw_only=True)
class PaidPeriod:
    """
    The latest paid period, with its payout in credits.

    `renews` is set while the subscription is active or past due and not being cancelled; the allowance then continues
    for `RENEWAL_GRACE` after `ends_at`. `resets_at` is the end of Stripe's current period if that is later than
    `ends_at`.
    """

    credits: int
    starts_at: datetime
    ends_at: datetime
    resets_at: datetime
    renews: bool

    def runs_at(self, now: datetime) -> bool:
        """Return whether the user is subscribed at `now`: within the period, or awaiting its renewal."""
        grace = RENEWAL_GRACE if self.renews else timedelta()
        return self.starts_at <= now < self.ends_at + grace

    def reset_after(self, now: datetime) -> datetime:
        return self.ends_at if now < self.ends_at else self.resets_at


def period_runs(*, now: str) -> str:
    """Return `PaidPeriod.runs_at` as SQL for `credits_allowance AS allowance`; `now` is an SQL expression."""
    hours = RENEWAL_GRACE // timedelta(hours=1)
    grace = f"CASE WHEN allowance.renews THEN interval '{hours} hours' ELSE interval '0' END"
    return f"(allowance.starts_at <= {now} AND {now} < allowance.ends_at + {grace})"


def running_allowance(allowance: Allowance | None, *, now: datetime) -> AllowanceView | None:
    """Return the current allowance; None for a user who is not subscribed at `now`."""
    return None if allowance is None else allowance_at(paid_period(allowance), now=now)


def allowance_at(period: PaidPeriod | None, *, now: datetime) -> AllowanceView | None:
    """Return the allowance of a period if it covers `now`."""
    if period is None or not period.runs_at(now):
        return None
    return AllowanceView(credits=period.credits, ends_at=period.reset_after(now))


def paid_period(row: Allowance) -> PaidPeriod:
    return PaidPeriod(
        credits=row.credits,
        starts_at=row.starts_at,
        ends_at=row.ends_at,
        resets_at=row.resets_at,
        renews=row.renews,
    )


# The columns of `credits_allowance AS allowance` for `period_from`; all NULL without a row.
PERIOD_COLUMNS = (
    "allowance.credits, allowance.starts_at, allowance.ends_at, allowance.resets_at, allowance.renews"
)


def period_from(columns: Sequence[Any]) -> PaidPeriod | None:
    """Return the period from the values of `PERIOD_COLUMNS`, if there is one."""
    paid, starts_at, ends_at, resets_at, renews = columns
    if paid is None:
        return None
    return PaidPeriod(credits=paid, starts_at=starts_at, ends_at=ends_at, resets_at=resets_at, renews=renews)


def has_earned(user: User) -> bool:
    """Return whether the user got credits from payments or earnings that were not all taken back."""
    row = db.first_row(HAS_EARNED, {"user": user.pk})
    return bool(row and row[0])


class DebtTerms(NamedTuple):
    """An account's debt limit, and the debt that the service still lends to all accounts today, in credits."""

    limit: int
    lendable: int


def debt_terms(badge_debts: Sequence[tuple[int, int]]) -> list[DebtTerms]:
    """Return the terms of users, given as pairs of id and the debt limit of their badges; one statement."""
    params = {"users": [user for user, _ in badge_debts], "debts": [debt for _, debt in badge_debts]}
    return [DebtTerms(*row) for row in db.all_rows(_DEBT_TERMS, params)]


_DEBT_TERMS = """
SELECT credits_debt_limit(account.id, wanted.debt), greatest(0, coalesce((
    SELECT credits FROM credits_unbackedceiling ORDER BY id DESC LIMIT 1
), 0) - coalesce((
    SELECT debt + check_ins FROM credits_unbackedday WHERE day = (statement_timestamp() AT TIME ZONE 'UTC')::date
), 0))
FROM unnest(%(users)s::bigint[], %(debts)s::bigint[]) WITH ORDINALITY AS wanted (user_id, debt, place)
LEFT JOIN credits_account AS account ON account.user_id = wanted.user_id
ORDER BY place
"""


def _listed(sources: Iterable[str]) -> str:
    return ", ".join(f"'{source}'" for source in sources)


# For the many users without reversals, this reads one entry and computes no sum. Sources are literals, because
# PostgreSQL cannot match a prepared statement's parameters with the partial index.
HAS_EARNED = f"""
SELECT EXISTS (SELECT FROM credits_entry WHERE account_id = account.id AND source IN ({_listed(PROOFS)}))
       AND (NOT EXISTS (SELECT FROM credits_entry
                        WHERE account_id = account.id AND source IN ({_listed(DISPROOFS)}))
            OR (SELECT sum(amount) FROM credits_entry
                WHERE account_id = account.id AND source IN ({_listed([*PROOFS, *DISPROOFS])})) > 0)
FROM credits_account AS account WHERE user_id = %(user)s
"""  # noqa: S608 (names of our own sources)


class UnbackedCounts(NamedTuple):
    """The credits that the service gave today without a payment or an earning, and their ceiling."""

    debt: int
    check_ins: int
    ceiling: int


def unbacked_today() -> UnbackedCounts:
    """Return today's unbacked credits, in one statement."""
    return UnbackedCounts(*db.only_row(_UNBACKED_TODAY, {}))


_UNBACKED_TODAY = """
SELECT coalesce(day.debt, 0), coalesce(day.check_ins, 0),
       coalesce((SELECT credits FROM credits_unbackedceiling ORDER BY id DESC LIMIT 1), 0)
FROM (SELECT) AS always
LEFT JOIN credits_unbackedday AS day ON day.day = (statement_timestamp() AT TIME ZONE 'UTC')::date
"""


class LedgerCounts(NamedTuple):
    """A snapshot of the ledger: whole credits, and ages in seconds, 0 if nothing waits."""

    accounts: int
    # Sums of positive balances, of negative balances, and of held credits.
    owned: int
    owed: int
    held: int
    open_holds: int
    open_hold_credits: int
    oldest_hold_age: float


def ledger_counts() -> LedgerCounts:
    """Return the snapshot in one statement, which reads all accounts and the open holds."""
    return LedgerCounts(*db.only_row(_COUNTS, {}))


_COUNTS = """
SELECT account.*, hold.*
FROM (SELECT count(*), coalesce(sum(balance) FILTER (WHERE balance > 0), 0)::bigint,
             coalesce(-sum(balance) FILTER (WHERE balance < 0), 0)::bigint, coalesce(sum(held), 0)::bigint
      FROM credits_account) AS account,
     (SELECT count(*), coalesce(sum(amount), 0)::bigint,
             coalesce(greatest(0, extract(epoch FROM statement_timestamp() - min(created_at))), 0)::float
      FROM credits_hold WHERE status = 'HELD') AS hold
"""


def last_reconciliations() -> list[ReconciliationRun]:
    """Return the newest finished run of each kind, without its findings."""
    finished = ReconciliationRun.objects.filter(finished_at__isnull=False).defer("findings")
    return list(finished.order_by("kind", "-started_at").distinct("kind"))
