"""Reads of the ledger: balances, entries, the allowance of the paid period, and reconciliation runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import (
    BigIntegerField,
    BooleanField,
    Case,
    Exists,
    F,
    Func,
    Min,
    OuterRef,
    QuerySet,
    Sum,
    Value,
    When,
)
from django.db.models.functions import Cast

from credits.models import (
    DISPROOFS,
    PROOFS,
    Allowance,
    CreditAccount,
    CreditEntry,
    CreditHold,
    EntrySource,
    ReconciliationRun,
)
from credits.rules import USE_PERIOD, daily_use
from gateway.common import db
from gateway.common.statements import Statements, fill, literals
from users.models import User

# Card renewals are collected 1-72 h after the period ends; the allowance continues until then.
RENEWAL_GRACE = timedelta(hours=72)


class _Sql(
    Statements,
    file=__file__,
    proofs=literals(*PROOFS),
    disproofs=literals(*DISPROOFS),
    both=literals(*PROOFS, *DISPROOFS),
    grace=f"{RENEWAL_GRACE // timedelta(hours=1)} hours",
):
    debt_terms: str
    has_earned: str
    unbacked_today: str
    counts: str
    period_runs: str


HAS_EARNED = _Sql.has_earned


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


# The hold is named by the key, because a reversed charge is no longer the entry of its hold.
_HOLD_ID = Func(OuterRef("key"), Value("^hold:([0-9]+)"), function="substring")
_CHARGES_PAID_ONLY = Case(
    When(
        source=EntrySource.RELAY_TRANSACTION,
        then=Exists(CreditHold.objects.filter(paid_only=True, pk=Cast(_HOLD_ID, BigIntegerField()))),
    ),
    default=False,
    output_field=BooleanField(),
)
# The values of entries in the order of `credits.lots.Posting`.
POSTING = (F("id"), F("key"), F("source"), F("amount"), _CHARGES_PAID_ONLY)

_USE = (EntrySource.RELAY_TRANSACTION, EntrySource.RELAY_REVERSAL)


def daily_uses(user_ids: Iterable[int], *, now: datetime) -> dict[int, int]:
    """Return the credits that each of these users was recently charged per day."""
    charges = CreditEntry.objects.filter(
        account__user_id__in=list(user_ids), source__in=_USE, created_at__gte=now - USE_PERIOD
    )
    sums = charges.order_by().values("account__user_id").annotate(sum=Sum("amount"), first=Min("created_at"))
    rows = sums.values_list("account__user_id", "sum", "first")
    return {user_id: daily_use(charged=-total, since_first=now - first) for user_id, total, first in rows}


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
    return fill(_Sql.period_runs, {"now": now})


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
    row = db.first_row(_Sql.has_earned, {"user": user.pk})
    return bool(row and row[0])


class DebtTerms(NamedTuple):
    """An account's debt limit, and the debt that the service still lends to all accounts today, in credits."""

    limit: int
    lendable: int


def debt_terms(badge_debts: Sequence[tuple[int, int]]) -> list[DebtTerms]:
    """Return the terms of users, given as pairs of id and the debt limit of their badges; one statement."""
    params = {"users": [user for user, _ in badge_debts], "debts": [debt for _, debt in badge_debts]}
    return [DebtTerms(*row) for row in db.all_rows(_Sql.debt_terms, params)]


class UnbackedCounts(NamedTuple):
    """The credits that the service gave today without a payment or an earning, and their ceiling."""

    debt: int
    check_ins: int
    ceiling: int


def unbacked_today() -> UnbackedCounts:
    """Return today's unbacked credits, in one statement."""
    return UnbackedCounts(*db.only_row(_Sql.unbacked_today, {}))


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
    return LedgerCounts(*db.only_row(_Sql.counts, {}))


def last_reconciliations() -> list[ReconciliationRun]:
    """Return the newest finished run of each kind, without its findings."""
    finished = ReconciliationRun.objects.filter(finished_at__isnull=False).defer("findings")
    return list(finished.order_by("kind", "-started_at").distinct("kind"))
