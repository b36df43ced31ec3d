"""The tables of a month, from its figures; one table is one sheet of the workbook and one CSV file."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from accounting.queries import Returned, Sale
from accounting.rules import parts_of
from accounting.services.figures import Figures, GasMoney, PersonKey
from accounting.services.ties import Statement, Tie, by_kind
from credits.models import EntrySource

Rows = list[list[Any]]
# Kinds of columns: how a stored value is shown.
TEXT, COUNT, CREDITS, MONEY, WEI, PRICE, PERSON = (
    "text",
    "count",
    "credits",
    "money",
    "wei",
    "price",
    "person",
)
# The title of the column before the last in the tables that tie to Stripe.
DIFFERENCE = "difference"


@dataclass(frozen=True)
class Sheet:
    """A table with a title and a kind for each column."""

    name: str
    columns: list[tuple[str, str]]
    rows: Rows


def _money(*titles: str) -> list[tuple[str, str]]:
    return [(title, MONEY) for title in titles]


def liability(figures: Figures, stored: Mapping[str, int]) -> Sheet:
    """
    Return the amount owed to holders, by currency.

    `stored` has the closing amounts of the previous month. If the current rules compute other amounts for its end, the
    difference is a correction in this month.
    """
    rows: Rows = []
    currencies = {key[1] for name in ("collected", "deferred", "breakage") for key in figures.names(name)}
    for currency in sorted({*currencies, *stored}):
        opening = stored.get(currency, figures.opening["deferred", currency])
        correction = figures.opening["deferred", currency] - opening
        revenue = sum(figures.moved(*key) for key in figures.names("revenue") if key[2] == currency)
        rows.append(
            [
                currency,
                opening,
                correction,
                figures.moved("collected", currency),
                -figures.moved("returned", currency),
                -revenue,
                -figures.moved("breakage", currency),
                figures.closing["deferred", currency],
            ]
        )
    heads = _money(
        "opening",
        "correction of earlier months",
        "collected",
        "returned",
        "earned by use",
        "breakage",
        "closing",
    )
    return Sheet("liability", [("currency", TEXT), *heads], rows)


_TAKEN = (
    ("used by calls", EntrySource.RELAY_TRANSACTION),
    ("first credits of profiles", EntrySource.FIRST_CREDITS),
    ("clawbacks", EntrySource.PAYOUT_CLAWBACK),
    ("reversed earnings", EntrySource.EARNING_REVERSAL),
    ("adjustments", EntrySource.STAFF_ADJUSTMENT),
    ("debts taken over", EntrySource.DEBT_TRANSFER),
    ("expired", EntrySource.CREDIT_EXPIRY),
)


def credits_of_kinds(figures: Figures) -> Sheet:
    """Return paid and given credits and debt of accounts that are not erased, from opening to closing."""
    rows: Rows = []
    both = (figures.opening, figures.closing)
    for kind in ("paid", "given"):
        taken = [-figures.moved("taken", kind, source) for _, source in _TAKEN]
        opening, closing = (totals["left", kind] - totals["erased", kind] for totals in both)
        rows.append(
            [kind, opening, figures.moved("granted", kind), *taken, -figures.moved("erased", kind), closing]
        )
    owed = [-figures.moved("debt", source) for _, source in _TAKEN]
    before, after = (
        totals["erased", "debt"] - sum(totals[key] for key in figures.names("debt")) for totals in both
    )
    rows.append(["debt", before, 0, *owed, figures.moved("erased", "debt"), after])
    rows.append(["balance", *(sum(column) for column in zip(*(row[1:] for row in rows), strict=True))])
    heads = ("opening", "added", *(title for title, _ in _TAKEN), "of erased people", "closing")
    return Sheet("credits", [("kind", TEXT), *((title, CREDITS) for title in heads)], rows)


def entries(figures: Figures) -> Sheet:
    rows: Rows = [[source, figures.moved(name, source)] for name, source in figures.names("entries")]
    return Sheet("entries", [("source", TEXT), ("credits", CREDITS)], rows)


def payouts(sold: Iterable[Sale]) -> Sheet:
    """Return payouts and purchases by source and currency."""
    sums: dict[tuple[str, str], Counter[str]] = {}
    for sale in sold:
        money = sale.money
        sums.setdefault((sale.source, money.currency), Counter()).update(
            count=1,
            net=money.net_minor,
            tax=money.tax_minor,
            other=money.charged_minor - money.net_minor - money.tax_minor,
            charged=money.charged_minor,
            credits=sale.credits,
        )
    rows: Rows = [
        [*key, total["count"], total["net"], total["tax"], total["other"], total["charged"], total["credits"]]
        for key, total in sorted(sums.items())
    ]
    heads = [("source", TEXT), ("currency", TEXT), ("count", COUNT)]
    money_heads = _money("net", "tax", "other products", "charged")
    return Sheet("payouts", [*heads, *money_heads, ("credits", CREDITS)], rows)


def returns(known: Iterable[Sale], opening: Mapping[int, Returned], closing: Mapping[int, Returned]) -> Sheet:
    """Return refunded and disputed money by currency, and its division into net amounts, tax and other lines."""
    sums: dict[str, Counter[str]] = {}
    none = Returned(0, 0)
    for sale in known:
        before, after = opening.get(sale.payout_id, none), closing.get(sale.payout_id, none)
        if before == after:
            continue
        first, last = parts_of(sale.money, before.total), parts_of(sale.money, after.total)
        sums.setdefault(sale.money.currency, Counter()).update(
            refunded=after.refunded - before.refunded,
            disputed=after.disputed - before.disputed,
            net=last.net - first.net,
            tax=last.tax - first.tax,
            other=last.other - first.other,
        )
    names = ("refunded", "disputed", "net", "tax", "other")
    rows: Rows = [[currency, *(total[name] for name in names)] for currency, total in sorted(sums.items())]
    heads = _money("refunds", "disputes", "of it net", "of it tax", "of it other products")
    return Sheet("returns", [("currency", TEXT), *heads], rows)


def tax(
    sold: Iterable[Sale],
    known: Iterable[Sale],
    opening: Mapping[int, Returned],
    closing: Mapping[int, Returned],
) -> Sheet:
    """Return the tax collected and returned, by the payer's country; "none" if Stripe computed no tax."""
    sums: dict[tuple[str, str], Counter[str]] = {}
    none = Returned(0, 0)
    for sale in sold:
        key = (sale.country or "none", sale.money.currency)
        sums.setdefault(key, Counter()).update(net=sale.money.net_minor, tax=sale.money.tax_minor)
    for sale in known:
        before, after = opening.get(sale.payout_id, none), closing.get(sale.payout_id, none)
        if before != after:
            key = (sale.country or "none", sale.money.currency)
            first, last = parts_of(sale.money, before.total), parts_of(sale.money, after.total)
            sums.setdefault(key, Counter()).update(
                returned_net=last.net - first.net, returned_tax=last.tax - first.tax
            )
    rows: Rows = [
        [
            *key,
            total["net"],
            total["tax"],
            -total["returned_net"],
            -total["returned_tax"],
            total["tax"] - total["returned_tax"],
        ]
        for key, total in sorted(sums.items())
    ]
    heads = _money("net sales", "tax collected", "net returned", "tax returned", "tax left")
    return Sheet("tax", [("country", TEXT), ("currency", TEXT), *heads], rows)


def stripe(statement: Statement) -> Sheet:
    """Return Stripe's movements by category, fees and bank payouts included, and how the balance changed."""
    rows: Rows = [
        [currency, category, total["count"], total["gross"], -total["fee"], total["net"]]
        for (currency, category), total in sorted(by_kind(statement).items())
    ]
    heads = [("currency", TEXT), ("category", TEXT), ("count", COUNT)]
    return Sheet("stripe", [*heads, *_money("gross", "fees", "net")], rows)


def tied(name: str, ties: Mapping[str, Tie]) -> Sheet:
    rows: Rows = [
        [
            currency,
            tie.stripe,
            -tie.others,
            -tie.later,
            tie.earlier,
            tie.ours,
            tie.difference,
            "; ".join(tie.unexplained),
        ]
        for currency, tie in sorted(ties.items())
    ]
    heads = _money(
        "at Stripe",
        "of others",
        "posted in a later month",
        "moved in an earlier month",
        "in our rows",
        DIFFERENCE,
    )
    return Sheet(name, [("currency", TEXT), *heads, ("what differs", TEXT)], rows)


def gas(figures: Figures, money: GasMoney, rates: Mapping[tuple[date, str], Decimal]) -> Sheet:
    """Return the gas of each day, in coins and at the day's rate if any, by the currency of the money that paid it."""
    by_day: Counter[tuple[date, str]] = Counter()
    for ((_, _, currency), day), wei in figures.gas.items():
        by_day[day, currency] += wei
    rows: Rows = []
    for (day, currency), wei in sorted(by_day.items()):
        price = rates.get((day, currency))
        shown = None if price is None else f"{price.normalize():f}"
        rows.append([day.isoformat(), currency, wei, shown, money.by_day.get((day, currency), 0)])
    heads = [("day", TEXT), ("currency", TEXT), ("gas", WEI), ("price of one coin", PRICE), ("cost", MONEY)]
    return Sheet("gas", heads, rows)


def sources(figures: Figures, money: GasMoney) -> Sheet:
    """Return use, revenue, gas and margin by the source of the credits that were used."""
    spent: Counter[tuple[str, str]] = Counter()
    for ((_, source, currency), _), wei in figures.gas.items():
        spent[source, currency] += wei
    keys = {(key[1], key[2]) for name in ("revenue", "used") for key in figures.names(name)} | set(spent)
    rows: Rows = []
    for source, currency in sorted(keys):
        revenue, cost = (
            figures.moved("revenue", source, currency),
            money.by_source.get((source, currency), 0),
        )
        used = figures.moved("used", source, currency)
        if used or revenue or spent[source, currency]:
            rows.append([source, currency, used, revenue, spent[source, currency], cost, revenue - cost])
    heads = [("source", TEXT), ("currency", TEXT), ("credits used", CREDITS), ("revenue", MONEY)]
    return Sheet("sources", [*heads, ("gas", WEI), *_money("gas cost", "margin")], rows)


def people(figures: Figures, money: GasMoney) -> Sheet:
    """Return use, revenue, gas and margin by person, then by sponsor; gas of neither is at the end."""
    spent: Counter[PersonKey] = Counter()
    for (person, _), wei in figures.gas.items():
        spent[person] += wei
    rows: Rows = []
    for person in sorted({*figures.people, *spent}, key=_people_first):
        owner, source, currency = person
        own, cost = figures.people.get(person, Counter()), money.by_person.get(person, 0)
        amounts = [own["used"], own["revenue"], spent[person], cost, own["revenue"] - cost]
        rows.append([owner.user_id, owner.user_id, owner.sponsor, source, currency, *amounts])
    heads = [("user", COUNT), ("profile", PERSON), ("sponsor", TEXT), ("source", TEXT), ("currency", TEXT)]
    more = [("credits used", CREDITS), ("revenue", MONEY), ("gas", WEI)]
    return Sheet("people", [*heads, *more, *_money("gas cost", "margin")], rows)


def _people_first(key: PersonKey) -> tuple[bool, bool, PersonKey]:
    owner = key[0]
    return owner.user_id is None, not owner.sponsor, key


def movements(statement: Statement) -> Sheet:
    """Return Stripe's balance transactions themselves."""
    rows: Rows = [
        [
            row.created_at.isoformat(timespec="seconds"),
            row.transaction_id,
            row.category,
            row.payment_intent_id,
            row.currency,
            row.amount_minor,
            -row.fee_minor,
            row.net_minor,
        ]
        for row in reversed(statement.of_month)
    ]
    heads = [(title, TEXT) for title in ("at", "transaction", "category", "payment", "currency")]
    return Sheet("movements", [*heads, *_money("gross", "fee", "net")], rows)
