"""Reads of all apps for a month: entries, money, gas, rates. Nothing here writes."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import groupby
from typing import NamedTuple

from django.db.models import Q, Sum

from accounting.models import CoinRate
from accounting.rules import Collected, Moved, deferred, kept_net
from credits.lots import Lots, Posting
from credits.models import CreditEntry
from credits.queries import POSTING
from gateway.chain.config import home
from gateway.common import db
from gateway.common.statements import Statements
from payments.models import FurtherPayment, MoneyReturn, Payout, StripeEvent
from relay.rules import RecordedRate
from users.models import AccountDeletion, User

# Entries of an account are ordered by version; their times may be out of order by the length of a lock wait.
_DISORDER = timedelta(hours=1)
_CHUNK = 5_000


class _Sql(Statements, file=__file__):
    gas: str
    funding: str
    spent: str
    relayers: str
    averages: str


class Owner(NamedTuple):
    """The owner of credits or gas: a user, a sponsor by name, or the service."""

    user_id: int | None
    sponsor: str = ""


class Row(NamedTuple):
    """An entry, and the account's balance after it."""

    account_id: int
    balance_after: int
    created_at: datetime
    posting: Posting


@dataclass(frozen=True, slots=True)
class Sale:
    """A payout or purchase: its money, its source, and the payer's country."""

    payout_id: int
    entry_id: int
    source: str
    country: str
    credits: int
    created_at: datetime
    money: Collected
    payment_ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class Gas:
    """
    Gas that was paid for a call on a day; `entry_id` is the charge, None if there is none.

    If a sponsor pays for the call, the gas for which the sponsor was charged belongs to the sponsor's account.
    """

    account_id: int
    owner: Owner
    entry_id: int | None
    day: date
    wei: int


def entries_by_account(
    *, until: datetime, users: Iterable[int] | None = None
) -> Iterator[tuple[Owner, list[Row]]]:
    """Yield the owner of each account with its entries before `until`, by version."""
    rows = CreditEntry.objects.filter(created_at__lt=until + _DISORDER)
    if users is not None:
        rows = rows.filter(account__user__in=users)
    values = rows.order_by("account_id", "account_version").values_list(
        "account_id", "account__user_id", "account__sponsor__slug",
        "balance_after", "created_at", *POSTING,
    )  # fmt: skip
    for (account_id, user_id, sponsor), group in groupby(
        values.iterator(chunk_size=_CHUNK), key=lambda row: row[:3]
    ):
        own = [Row(account_id, row[3], row[4], Posting(*row[5:])) for row in group]
        yield Owner(user_id, sponsor or ""), own[: first_from(own, until)]


def first_from(rows: list[Row], moment: datetime) -> int:
    """Return the place of the first entry at or after that time; all entries after it count as later, too."""
    return next((place for place, row in enumerate(rows) if row.created_at >= moment), len(rows))


class Worth(NamedTuple):
    """A person's credits by kind, and the money that is owed for the paid ones, in minor units by currency."""

    paid: int
    given: int
    debt: int
    owed: list[tuple[str, int]]


def worth_of(user: User, *, now: datetime) -> Worth:
    """Return the kinds of a person's credits, and the money owed for the paid ones; reads all of the entries."""
    until = now + _DISORDER
    rows = next(iter(entries_by_account(until=until, users=[user.pk])), (Owner(user.pk), []))[1]
    lots = Lots(row.posting for row in rows)
    own, back = sales(until=until, users=[user.pk]), returned(until=until, users=[user.pk])
    owed: dict[str, int] = {}
    for lot in lots:
        if sale := own.get(lot.entry_id):
            kept = kept_net(sale.money, back.get(sale.payout_id, Returned(0, 0)).total)
            owed[sale.money.currency] = owed.get(sale.money.currency, 0) + deferred(lot, kept)
    return Worth(lots.paid, lots.given, lots.debt, sorted(owed.items()))


def sales(*, until: datetime, users: Iterable[int] | None = None) -> dict[int, Sale]:
    """Return payouts and purchases whose credits were posted before `until`, by entry."""
    rows = Payout.objects.filter(entry__created_at__lt=until).order_by("pk")
    payments = FurtherPayment.objects.all()
    if users is not None:
        rows, payments = rows.filter(user__in=users), payments.filter(payout__user__in=users)
    further: dict[int, list[str]] = {}
    for payout_id, intent in payments.values_list("payout_id", "stripe_payment_intent_id"):
        further.setdefault(payout_id, []).append(intent)
    values = rows.values_list(
        "pk", "entry_id", "entry__source", "country", "credits", "entry__created_at", "currency", "amount_minor",
        "tax_minor", "other_minor", "stripe_payment_intent_id",
    )  # fmt: skip
    return {
        entry_id: Sale(
            payout_id=pk,
            entry_id=entry_id,
            source=source,
            country=country,
            credits=sold,
            created_at=created_at,
            money=Collected(currency, net, tax, net + tax + other),
            payment_ids=frozenset(intent for intent in (first, *further.get(pk, ())) if intent),
        )
        for pk, entry_id, source, country, sold, created_at, currency, net, tax, other, first in values.iterator(
            chunk_size=_CHUNK
        )
    }


class Returned(NamedTuple):
    """Money returned of a payout, by refunds and by disputes."""

    refunded: int
    disputed: int

    @property
    def total(self) -> int:
        return self.refunded + self.disputed


def returned(*, until: datetime, users: Iterable[int] | None = None) -> dict[int, Returned]:
    """Return the money that was returned before `until`, by payout."""
    rows = MoneyReturn.objects.filter(created_at__lt=until).values_list("payout_id").order_by("payout_id")
    if users is not None:
        rows = rows.filter(payout__user__in=users)
    sums = rows.annotate(refunded=Sum("refunded_minor"), disputed=Sum("disputed_minor"))
    return {payout_id: Returned(*parts) for payout_id, *parts in sums}


def returned_in_order(*, since: datetime, until: datetime) -> dict[int, list[Moved]]:
    """Return the money that our rows knew as returned from `since` until before `until`, by payout."""
    rows = MoneyReturn.objects.filter(created_at__gte=since, created_at__lt=until).order_by(
        "created_at", "pk"
    )
    moved: dict[int, list[Moved]] = {}
    values = rows.values_list("payout_id", "created_at", "refunded_minor", "disputed_minor")
    for payout_id, at, refunded, disputed in values:
        moved.setdefault(payout_id, []).append(Moved(at, refunded + disputed))
    return moved


def erased_users(*, until: datetime) -> set[int]:
    """Return the users whose deleted accounts were erased before `until`."""
    return set(AccountDeletion.objects.filter(erased_at__lt=until).values_list("user_id", flat=True))


def gas_of_calls(*, since: datetime, until: datetime) -> list[Gas]:
    """Return the gas of the attempts that were mined from `since` until before `until`; in one statement."""
    rows = db.all_rows(_Sql.gas, {**_span(since, until), "home": home().id})
    return [
        Gas(account_id, Owner(user_id, sponsor or ""), entry_id, day, int(wei))
        for account_id, user_id, sponsor, entry_id, day, wei in rows
    ]


def gas_of_funding(*, since: datetime, until: datetime) -> dict[date, int]:
    """Return the fees of transfers from the treasury to relayers of the home chain, in wei by day."""
    fees = fees_of_chains(since=since, until=until)
    return {day: wei for (chain_id, day), wei in fees.items() if chain_id == home().id}


def fees_of_chains(*, since: datetime, until: datetime) -> dict[tuple[int, date], int]:
    """Return the fees of transfers from treasuries to relayers, in wei by chain and day."""
    rows = db.all_rows(_Sql.funding, {"since": since, "until": until})
    return {(chain_id, day): int(wei) for chain_id, day, wei in rows}


class Spent(NamedTuple):
    """
    The mined transactions of calls of a chain on a day, and their cost.

    `charged_wei` is what the credits that were charged for these calls pay for, at the calls' own prices.
    """

    chain_id: int
    day: date
    calls: int
    credits: int
    charged_wei: int
    wei: int


def spent_on_chains(*, since: datetime, until: datetime) -> list[Spent]:
    """Return what calls have cost on each chain and day, in one statement."""
    return [Spent(*row[:2], *map(int, row[2:])) for row in db.all_rows(_Sql.spent, _span(since, until))]


def spent_by_relayers(*, since: datetime, until: datetime) -> dict[int, int]:
    """Return what the receipts of each chain's relayers add up to, in wei."""
    return {chain_id: int(wei) for chain_id, wei in db.all_rows(_Sql.relayers, _span(since, until))}


def _span(since: datetime, until: datetime) -> dict[str, datetime]:
    # A transaction is mined long before it is 40 days old.
    return {"since": since, "until": until, "oldest": since - timedelta(days=40)}


class Today(NamedTuple):
    """Averages over charged calls: credits per call, and wei per unit of gas; None if there are no calls."""

    call_credits: Decimal | None
    gas_price_wei: Decimal | None


def averages(*, since: datetime) -> Today:
    """Return the averages of the calls that were mined since `since`, in one statement."""
    return Today(*db.only_row(_Sql.averages, {"since": since, "home": home().id}))


def newest_prices() -> dict[str, CoinRate]:
    """Return the newest rate of the home chain's coin in each currency."""
    return {rate.currency: rate for rate in newest_rates() if rate.coin == home().currency}


def newest_rates() -> list[CoinRate]:
    """Return the newest rate of each coin in each currency."""
    return list(CoinRate.objects.order_by("coin", "currency", "-day").distinct("coin", "currency"))


def recorded_rates() -> list[RecordedRate]:
    """Return the newest rates in the form in which prices of a credit are compared with them."""
    return [RecordedRate(rate.coin, rate.currency, rate.day, rate.price) for rate in newest_rates()]


def rates(*, since: date, until: date) -> Mapping[tuple[date, str], Decimal]:
    """Return the prices of one coin of the home chain, by day and currency."""
    of_coins = rates_of_coins(since=since, until=until)
    return {
        (day, currency): price for (day, coin, currency), price in of_coins.items() if coin == home().currency
    }


def rates_of_coins(*, since: date, until: date) -> Mapping[tuple[date, str, str], Decimal]:
    """Return the prices of coins, by day, coin and currency."""
    rows = CoinRate.objects.filter(day__gte=since, day__lt=until)
    return {(row.day, row.coin, row.currency): row.price for row in rows}


def waiting_events(*, until: datetime) -> int:
    """Count the events of Stripe that arrived before `until` and are not applied."""
    return StripeEvent.objects.filter(~Q(status="processed"), received_at__lt=until).count()


def has_entries(*, until: datetime) -> bool:
    return CreditEntry.objects.filter(created_at__lt=until).exists()
