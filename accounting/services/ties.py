"""
Ties a month's payouts and returned money to Stripe's balance transactions, payment by payment.

Stripe's movement and our row have different times, so some movements of a month belong to rows of the previous or the
next month. These are counted one by one; any remaining amount is a difference.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from accounting.queries import Returned, Sale
from payments.stripe import get_billing_client
from payments.stripe.client import BalanceTransaction

# How long before its payout a payment may have been collected.
LOOKBACK = timedelta(days=35)
CHARGES = ("charge", "payment")


@dataclass(frozen=True)
class Statement:
    """The account's movements of a month, and those of charges shortly before."""

    of_month: list[BalanceTransaction] = field(default_factory=list)
    before: list[BalanceTransaction] = field(default_factory=list)


def read(*, since: datetime, until: datetime) -> Statement:
    """Read the movements from Stripe."""
    rows = list(get_billing_client().balance_transactions(since=since - LOOKBACK, until=until))
    return Statement(
        [row for row in rows if row.created_at >= since], [row for row in rows if row.created_at < since]
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
    opening: Mapping[int, Returned],
    closing: Mapping[int, Returned],
    latest: Mapping[int, Returned],
) -> dict[str, Tie]:
    """
    Tie refunds and disputes to the returned money of our rows; sums that left the account are positive.

    `opening`, `closing` and `latest` have the money that our rows know as returned at both ends of the month, and now.
    """
    by_payment = {payment: sale for sale in known for payment in sale.payment_ids}
    ties: dict[str, Tie] = {}
    moved, moved_before = (_returned_by(rows, by_payment) for rows in (statement.of_month, statement.before))
    for row in filter(_is_return, statement.of_month):
        tie = ties.setdefault(row.charged_currency, Tie())
        tie.stripe -= row.charged_minor
        if row.payment_intent_id not in by_payment:
            tie.others -= row.charged_minor
    none = Returned(0, 0)
    for sale in known:
        at = [sums.get(sale.payout_id, none).total for sums in (opening, closing, latest)]
        ours, after, excess = at[1] - at[0], at[2] - at[1], moved[sale.payout_id] - (at[1] - at[0])
        if not ours and not excess:
            continue
        tie = ties.setdefault(sale.money.currency, Tie())
        tie.ours += ours
        # A movement of the last minutes of a month is read in the next one.
        if excess and excess == after:
            tie.later += excess
        elif excess and -excess == moved_before[sale.payout_id]:
            tie.earlier -= excess
        elif excess:
            tie.unexplained.append(
                f"payout {sale.payout_id}: {ours} returned by our rows, {ours + excess} at Stripe"
            )
    return ties


def _is_return(row: BalanceTransaction) -> bool:
    return bool(row.payment_intent_id) and row.category not in CHARGES


def _returned_by(rows: Iterable[BalanceTransaction], by_payment: Mapping[str, Sale]) -> Counter[int]:
    sums: Counter[int] = Counter()
    for row in filter(_is_return, rows):
        if sale := by_payment.get(row.payment_intent_id):
            sums[sale.payout_id] -= row.charged_minor
    return sums


def by_kind(statement: Statement) -> dict[tuple[str, str], Counter[str]]:
    """Return count, gross, fee and net of the month's movements, by the balance's currency and Stripe's category."""
    sums: dict[tuple[str, str], Counter[str]] = {}
    for row in statement.of_month:
        total = sums.setdefault((row.currency, row.category), Counter())
        total.update(count=1, gross=row.amount_minor, fee=row.fee_minor, net=row.net_minor)
    return sums
