"""
Ties a month's payouts and returned money to Stripe's balance transactions, payment by payment.

Stripe's movement and our row have different times, so some movements of a month belong to rows of the previous or the
next month. These are matched one by one; any remaining amount is a difference.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from accounting.queries import Sale
from accounting.rules import Match, Moved, matched
from payments.stripe import get_billing_client
from payments.stripe.client import BalanceTransaction

# How long a payment may have been collected before its payout, and how late our rows may know of returned money.
LOOKBACK = timedelta(days=35)
CHARGES = ("charge", "payment")


@dataclass(frozen=True)
class Statement:
    """The account's movements of a month, those shortly before, and those after it, each newest first."""

    of_month: list[BalanceTransaction] = field(default_factory=list)
    before: list[BalanceTransaction] = field(default_factory=list)
    after: list[BalanceTransaction] = field(default_factory=list)


def read(*, since: datetime, until: datetime, now: datetime) -> Statement:
    """Read the movements from Stripe."""
    latest = max(until, min(now, until + LOOKBACK))
    rows = list(get_billing_client().balance_transactions(since=since - LOOKBACK, until=latest))
    return Statement(
        [row for row in rows if since <= row.created_at < until],
        [row for row in rows if row.created_at < since],
        [row for row in rows if row.created_at >= until],
    )


@dataclass
class Tie:
    """
    The reconciliation of Stripe's sum with ours, in one currency: `stripe - others - later + earlier = ours`.

    `others` belongs to no payout of ours, `later` was not posted by the end of the month, and `earlier` moved at Stripe
    in the previous month. `difference` is the unexplained rest, and `unexplained` names its payouts.
    """

    stripe: int = 0
    others: int = 0
    later: int = 0
    earlier: int = 0
    ours: int = 0
    unexplained: list[str] = field(default_factory=list)

    @property
    def difference(self) -> int:
        return self.stripe - self.others - self.later + self.earlier - self.ours


def tie_charges(
    statement: Statement, *, sold: Iterable[Sale], known: Iterable[Sale], since: datetime
) -> dict[str, Tie]:
    """Tie the charges to the sales of the month (`sold`); `known` has all sales, later ones included."""
    by_payment = {payment: sale for sale in known for payment in sale.payment_ids}
    ties: dict[str, Tie] = {}
    charged: Counter[int] = Counter()
    charged_before: Counter[int] = Counter()
    own = {sale.payout_id: sale for sale in sold}
    for row in statement.before:
        if row.category in CHARGES and (sale := by_payment.get(row.payment_intent_id)):
            charged_before[sale.payout_id] += row.charged_minor
    for row in statement.of_month:
        if row.category not in CHARGES:
            continue
        tie, sale = ties.setdefault(row.charged_currency, Tie()), by_payment.get(row.payment_intent_id)
        tie.stripe += row.charged_minor
        if sale is None:
            tie.others += row.charged_minor
        elif sale.payout_id in own:
            charged[sale.payout_id] += row.charged_minor
        elif sale.created_at >= since:
            tie.later += row.charged_minor
        else:
            tie.unexplained.append(f"payout {sale.payout_id}: charged again after it was posted")
    for sale in own.values():
        tie = ties.setdefault(sale.money.currency, Tie())
        tie.ours += sale.money.charged_minor
        tie.earlier += charged_before[sale.payout_id]
        found = charged[sale.payout_id] + charged_before[sale.payout_id]
        if found != sale.money.charged_minor:
            tie.unexplained.append(
                f"payout {sale.payout_id}: {sale.money.charged_minor} charged by our row, {found} at Stripe"
            )
    return ties


def tie_returns(
    statement: Statement,
    *,
    known: Sequence[Sale],
    rows: Mapping[int, Sequence[Moved]],
    since: datetime,
    until: datetime,
) -> dict[str, Tie]:
    """
    Tie refunds and disputes to the returned money of our rows; sums that left the account are positive.

    `rows` has what our rows knew by payout, from `LOOKBACK` before the month until now.
    """
    by_payment = {payment: sale for sale in known for payment in sale.payment_ids}
    ties: dict[str, Tie] = {}
    moved: dict[int, list[Moved]] = {}
    for row in filter(_is_return, reversed([*statement.after, *statement.of_month, *statement.before])):
        if sale := by_payment.get(row.payment_intent_id):
            moved.setdefault(sale.payout_id, []).append(Moved(row.created_at, -row.charged_minor))
    for row in filter(_is_return, statement.of_month):
        tie = ties.setdefault(row.charged_currency, Tie())
        tie.stripe -= row.charged_minor
        if row.payment_intent_id not in by_payment:
            tie.others -= row.charged_minor
    for sale in known:
        matches = matched(moved.get(sale.payout_id, []), rows.get(sale.payout_id, []))
        _tie_payout(ties, sale, [_placed(match, since, until) for match in matches])
    return ties


class _Placed(NamedTuple):
    """The sides of a match: -1 before, 0 in, 1 after the month, None if missing."""

    at_stripe: int | None
    in_rows: int | None
    minor: int


def _placed(match: Match, since: datetime, until: datetime) -> _Placed:
    def place(at: datetime | None) -> int | None:
        return None if at is None else (at >= until) - (at < since)

    return _Placed(place(match.at_stripe), place(match.in_rows), match.minor)


def _tie_payout(ties: dict[str, Tie], sale: Sale, matches: Iterable[_Placed]) -> None:
    """Count what moved at Stripe, or was known by our rows, in the month."""
    of_month = [match for match in matches if 0 in (match.at_stripe, match.in_rows)]
    if not of_month:
        return
    tie = ties.setdefault(sale.money.currency, Tie())
    ours = sum(match.minor for match in of_month if match.in_rows == 0)
    tie.ours += ours
    missing = 0
    for at_stripe, in_rows, minor in of_month:
        if at_stripe is None or in_rows is None:
            missing += minor if in_rows is None else -minor
            continue
        # A movement of the last minutes of a month is read in the next one.
        tie.later += minor * (max(in_rows, 0) - max(at_stripe, 0))
        tie.earlier += minor * (max(-at_stripe, 0) - max(-in_rows, 0))
    if missing:
        tie.unexplained.append(
            f"payout {sale.payout_id}: {ours} returned by our rows, {ours + missing} at Stripe"
        )


def _is_return(row: BalanceTransaction) -> bool:
    return bool(row.payment_intent_id) and row.category not in CHARGES


def by_kind(statement: Statement) -> dict[tuple[str, str], Counter[str]]:
    """Return count, gross, fee and net of the month's movements, by the balance's currency and Stripe's category."""
    sums: dict[tuple[str, str], Counter[str]] = {}
    for row in statement.of_month:
        total = sums.setdefault((row.currency, row.category), Counter())
        total.update(count=1, gross=row.amount_minor, fee=row.fee_minor, net=row.net_minor)
    return sums
