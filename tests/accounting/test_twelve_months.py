"""Twelve random months are closed: they tie to the ledger, to Stripe, to the chain, and to each other."""

import os
from collections import Counter
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from math import ceil
from typing import Any

import pytest
from django.db import ProgrammingError, transaction
from django.db.models import F, Sum

from accounting.models import Month, MonthSheet
from accounting.services.closing import digest_of
from credits.lots import Lots, Posting
from credits.models import CreditEntry
from payments.models import MoneyReturn, Payout
from relay.models import Attempt
from tests.accounting.world import World, months
from tests.fakes.billing import FakeBilling

pytestmark = pytest.mark.django_db
_PEOPLE = int(os.environ.get("CLOSING_PEOPLE", "6"))
_MOVES = int(os.environ.get("CLOSING_MOVES", "25"))


def sheet(month: Month, name: str) -> list[dict[str, Any]]:
    """Return the rows of a sheet by title."""
    parts = MonthSheet.objects.filter(month=month, name=name).order_by("part")
    return [
        dict(zip((title for title, _ in part.columns), row, strict=True))
        for part in parts
        for row in part.rows
    ]


def total(rows: list[dict[str, Any]], title: str) -> Counter[str]:
    sums: Counter[str] = Counter()
    for row in rows:
        sums[row["currency"]] += row[title]
    return sums


def test_twelve_random_months_tie_to_ledger_stripe_chain_and_each_other(stripe: FakeBilling) -> None:
    world = World(stripe, _PEOPLE)
    closed: list[Month] = []
    borders = months(stripe.now(), 12)
    for begins, ends in pairwise(borders):
        for _ in range(_MOVES):
            last = ends - timedelta(hours=2)
            world.move_to(min(last, world.now + timedelta(hours=world.chance.randint(1, 28))))
            world.live()
        world.move_to(ends + timedelta(hours=world.chance.randint(25, 40)))
        month = world.prepare(begins)
        assert month.problems == []
        month = world.close(month)
        _ties_to_the_ledger(world, month, begins, ends)
        _ties_to_stripe(world, month, begins, ends)
        _ties_to_the_chain(month, begins, ends)
        if closed:
            _continues(month, closed[-1])
        closed.append(month)
    assert len(closed) == 12
    for month in closed:
        assert digest_of(month) == month.digest
    # Everything that was sold was returned, earned, or is still owed.
    for currency in {row["currency"] for month in closed for row in sheet(month, "liability")}:
        rows = [row for month in closed for row in sheet(month, "liability") if row["currency"] == currency]
        names = ("collected", "returned", "earned by use", "breakage")
        assert sum(row[name] for row in rows for name in names) == rows[-1]["closing"]


def _ties_to_the_ledger(world: World, month: Month, begins: datetime, ends: datetime) -> None:
    for row in sheet(month, "liability"):
        moved = (
            "opening",
            "correction of earlier months",
            "collected",
            "returned",
            "earned by use",
            "breakage",
        )
        assert sum(row[name] for name in moved) == row["closing"] >= 0
        assert row["correction of earlier months"] == row["breakage"] == 0
    owed = sheet(month, "liability")
    assert +total(owed, "collected") == +total(sheet(month, "payouts"), "net")
    returned = total(sheet(month, "returns"), "of it net")
    assert {name: -net for name, net in returned.items() if net} == {
        name: net for name, net in total(owed, "returned").items() if net
    }
    _is_owed_lot_by_lot(owed, ends)
    kinds = {row["kind"]: row for row in sheet(month, "credits")}
    for row in kinds.values():
        numbers = [value for name, value in row.items() if name not in {"kind", "closing"}]
        assert sum(numbers) == row["closing"]
    assert kinds["balance"]["closing"] == world.balance(ends)
    assert kinds["balance"]["opening"] == world.balance(begins)
    assert kinds["paid"]["closing"] >= 0 <= kinds["given"]["closing"]
    posted = CreditEntry.objects.filter(created_at__gte=begins, created_at__lt=ends)
    by_source = dict(posted.values_list("source").annotate(total=Sum("amount")).order_by("source"))
    assert {row["source"]: row["credits"] for row in sheet(month, "entries") if row["credits"]} == {
        source: amount for source, amount in by_source.items() if amount
    }
    sources = sheet(month, "sources")
    earned = {row["currency"]: -row["earned by use"] for row in sheet(month, "liability")}
    assert +total(sources, "revenue") == +Counter(earned)
    assert +total(sheet(month, "people"), "revenue") == +Counter(earned)


def _is_owed_lot_by_lot(owed: list[dict[str, Any]], ends: datetime) -> None:
    """Compute what is owed once more, from the rows alone."""
    left: Counter[str] = Counter()
    for payout in Payout.objects.filter(entry__created_at__lt=ends).select_related("entry"):
        rows = CreditEntry.objects.filter(account=payout.entry.account_id, created_at__lt=ends)
        postings = rows.order_by("account_version").values_list("id", "key", "source", "amount")
        lot = Lots(Posting(*row) for row in postings).lot_of(payout.entry_id)
        back = MoneyReturn.objects.filter(payout=payout, created_at__lt=ends)
        returned = sum(row.refunded_minor + row.disputed_minor for row in back)
        kept = (
            payout.amount_minor
            - payout.amount_minor * min(returned, payout.charged_minor) // payout.charged_minor
        )
        clawed = -sum(
            row.entry.amount
            for row in payout.clawbacks.filter(entry__created_at__lt=ends).select_related("entry")
            if row.entry
        )
        assert lot is not None
        if lot.remaining:
            left[payout.currency] += ceil(Fraction(kept * lot.remaining, payout.credits - clawed))
    assert {row["currency"]: row["closing"] for row in owed if row["closing"]} == dict(+left)


def _ties_to_stripe(world: World, month: Month, begins: datetime, ends: datetime) -> None:
    for name in ("charges", "refunds and disputes"):
        for row in sheet(month, name):
            assert (row["difference"], row["what differs"]) == (0, "")
    own = [row for row in world.stripe.movements if begins <= row.created_at < ends]
    stated = sheet(month, "stripe")
    for title, sign, field in (
        ("gross", 1, "amount_minor"),
        ("fees", -1, "fee_minor"),
        ("net", 1, "net_minor"),
    ):
        sums: Counter[str] = Counter()
        for movement in own:
            sums[movement.currency] += sign * getattr(movement, field)
        assert {currency: value for currency, value in total(stated, title).items() if value} == {
            currency: value for currency, value in sums.items() if value
        }
    assert len(sheet(month, "movements")) == len(own)
    payouts = Payout.objects.filter(entry__created_at__gte=begins, entry__created_at__lt=ends)
    charged = F("amount_minor") + F("tax_minor") + F("other_minor")
    ours = dict(payouts.values_list("currency").annotate(total=Sum(charged)).order_by("currency"))
    assert total(sheet(month, "payouts"), "charged") == Counter(ours)
    assert total(sheet(month, "charges"), "in our rows") == Counter(ours)
    returned = MoneyReturn.objects.filter(created_at__gte=begins, created_at__lt=ends)
    both = returned.aggregate(total=Sum(F("refunded_minor") + F("disputed_minor"), default=0))["total"]
    rows = sheet(month, "returns")
    assert sum(row["refunds"] + row["disputes"] for row in rows) == both
    assert all(
        row["refunds"] + row["disputes"] == row["of it net"] + row["of it tax"] + row["of it other products"]
        for row in rows
    )


def _ties_to_the_chain(month: Month, begins: datetime, ends: datetime) -> None:
    mined = Attempt.objects.filter(mined_at__gte=begins, mined_at__lt=ends)
    wei = sum((row.gas_used or 0) * (row.effective_gas_price_wei or 0) for row in mined)
    sheets = {name: sheet(month, name) for name in ("gas", "sources", "people")}
    assert {sum(int(row["gas"]) for row in rows) for rows in sheets.values()} == {wei}
    costs = {name: +total(rows, "cost" if name == "gas" else "gas cost") for name, rows in sheets.items()}
    assert costs["gas"] == costs["sources"] == costs["people"]


def _continues(month: Month, before: Month) -> None:
    closing = {row["currency"]: row["closing"] for row in sheet(before, "liability")}
    opening = {row["currency"]: row["opening"] for row in sheet(month, "liability")}
    assert {currency: owed for currency, owed in opening.items() if owed} == {
        currency: owed for currency, owed in closing.items() if owed
    }
    last, first = ({row["kind"]: row for row in sheet(one, "credits")} for one in (before, month))
    assert {kind: row["closing"] for kind, row in last.items()} == {
        kind: row["opening"] for kind, row in first.items()
    }


def test_a_closed_month_never_changes_and_a_correction_falls_into_the_next(stripe: FakeBilling) -> None:
    world = World(stripe, 1)
    payer = world.payers[0]
    january, february, march = months(stripe.now(), 2)
    with world.dated():
        payer.upsert(1_000)
    world.deliver()
    world.move_to(february + timedelta(hours=25))
    month = world.close(world.prepare(january))
    (before,) = sheet(month, "liability")

    for change in (
        lambda: Month.objects.filter(pk=month.pk).update(problems=["none"]),
        lambda: month.sheets.update(rows=[]),
        lambda: month.sheets.filter(place=0).delete(),
        lambda: MonthSheet.objects.create(month=month, name="x", place=99, columns=[], rows=[]),
    ):
        with pytest.raises(ProgrammingError), transaction.atomic():
            change()
    stripe.refund(payer.payout.stripe_payment_intent_id, 400)
    world.deliver()
    world.move_to(march + timedelta(hours=25))
    later = world.prepare(february)

    assert digest_of(month) == month.digest
    (after,) = sheet(later, "liability")
    assert after["opening"] == before["closing"]
    (returned,) = sheet(later, "returns")
    assert returned["refunds"] == 400
