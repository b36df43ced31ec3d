"""A sponsor's month: two persons fund it, it pays for calls, and each figure ties to the ledger to the credit."""

import random
import secrets
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from accounting.models import Month
from accounting.queries import averages
from accounting.services.exports import Value, tables
from credits.models import CreditAccount, CreditEntry
from credits.services import entries, holds
from payments.services import purchases
from payments.services.purchases import Order
from relay.models import Attempt
from sponsors.models import Sponsor
from sponsors.queries.exports import Row, call_rows, entry_rows
from sponsors.rules.policies import sponsor_part
from tests.accounting.books import month_ties
from tests.accounting.timeline import months, sheet
from tests.accounting.world import World
from tests.fakes.billing import FakeBilling
from tests.sponsors.sponsorships import make_policy, make_sponsor

pytestmark = pytest.mark.django_db


_OF_CALLS = ("RELAY_TRANSACTION", "RELAY_REVERSAL")


def _lines(rows: Iterator[Row]) -> list[dict[str, Any]]:
    """Return the rows that the sponsor itself exports, by their headings."""
    headings = next(rows)
    return [dict(zip(map(str, headings), row, strict=True)) for row in rows]


def _close(world: World, begins: datetime, ends: datetime) -> Month:
    """Close the first month, and compare each table with the rows."""
    world.jump_to(ends + timedelta(hours=30))
    month = world.close(world.prepare(begins))
    month_ties(world, month, begins, ends, Counter())
    return month


def _gas(attempt: Attempt) -> int:
    return int(attempt.gas_used or 0) * int(attempt.effective_gas_price_wei or 0)


def _of_sponsor(month: Month, sponsor: Sponsor) -> list[tuple[str, int, int]]:
    """Return source, credits used and gas of the sponsor's rows."""
    rows = [row for row in sheet(month, "people") if row["sponsor"] == sponsor.slug]
    return [(row["source"], row["credits used"], int(row["gas"])) for row in rows]


def _exported(month: Month, sponsor: Sponsor) -> list[dict[str, Value]]:
    """Return the sponsor's rows of the export."""
    people = next(table for table in tables(month) if table.name == "people")
    rows = [dict(zip(people.titles, row, strict=True)) for row in people.rows]
    return [row for row in rows if row["sponsor"] == sponsor.slug]


def test_a_sponsors_month_ties_to_the_ledger_to_the_credit_and_is_exported(stripe: FakeBilling) -> None:
    world, sponsor = World(stripe, 1), make_sponsor(0)
    begins, ends = months(world.now, 1)
    [payer], funds, share = world.payers, random.randint(20_001, 90_000), random.randint(1, 90)
    whole, partly = make_policy(sponsor), make_policy(sponsor, share_percent=share)
    first, second, third, fourth = (random.randint(100, 4_000) for _ in range(4))
    part = sponsor_part(second, share_percent=share)
    with world.dated():
        world.adjust_sponsor(sponsor, funds)
        entries.grant(user=payer.user, credits=10_000, source="SURVEYS", key=secrets.token_hex(8))
    with world.dated():
        terms = {first: whole, second: partly, third: whole, fourth: whole}
        placed = [(cost, world.sponsored_hold(payer, version, cost)) for cost, version in terms.items()]
        mined = [_gas(world.mine(payer, hold, cost)) for cost, hold in placed]
        # The third costs nothing. A reorganisation takes back the charge of the fourth.
        for cost, hold in placed:
            world.settle(hold, 0 if cost == third else cost)
        holds.reopen(hold_ids=list(world.charged.pop(placed[3][1].pk)))

    month = _close(world, begins, ends)

    account = CreditAccount.objects.get(sponsor=sponsor)
    assert (account.balance, account.held) == (funds - first - part, fourth)
    gas_of_part = mined[1] * part // second
    assert _of_sponsor(month, sponsor) == [("STAFF_ADJUSTMENT", first + part, mined[0] + gas_of_part)]
    own = {row["source"]: row for row in sheet(month, "people") if row["user"] == payer.user.pk}
    assert own["SURVEYS"]["credits used"] == second - part
    assert {source: int(row["gas"]) for source, row in own.items()} == {
        "SURVEYS": mined[1] - gas_of_part,
        "NOT_CHARGED": mined[2] + mined[3],
    }
    given = next(row for row in sheet(month, "credits") if row["kind"] == "given")
    assert (given["added"], given["used by calls"]) == (funds + 10_000, -first - second)
    # By now, the rest of the person may have expired.
    assert given["closing"] == account.balance + 10_000 - (second - part)
    # The export has what the sheets have.
    [row] = _exported(month, sponsor)
    assert (row["user"], row["profile"], row["credits used"]) == ("", "", first + part)
    assert row["gas"] == Decimal(mined[0] + gas_of_part) / 10**18


def test_a_month_from_a_pack_to_its_refund_ties_to_stripe_the_ledger_and_the_export(
    stripe: FakeBilling,
) -> None:
    world, sponsor = World(stripe, 1), make_sponsor(0)
    begins, ends = months(world.now, 1)
    [payer], terms = world.payers, make_policy(sponsor, call_credits=10**9)
    currency = world.currencies[payer.user.pk]
    pack = world.packs[currency][0]
    with world.dated():
        order = Order(pack.amount_minor, currency, pack, sponsor=sponsor)
        purchases.buy(user=payer.user, order=order, key=secrets.token_hex(8), now=world.now)
    world.deliver()
    (payout,) = payer.purchases
    used, back = random.randint(1, payout.credits // 2), random.randint(1, pack.amount_minor // 4)
    with world.dated():
        hold = world.sponsored_hold(payer, terms, used)
        gas = _gas(world.mine(payer, hold, used))
        world.settle(hold, used)
    stripe.refund(payout.stripe_payment_intent_id, back)
    world.deliver()

    month = _close(world, begins, ends)

    clawed, kept = payout.credits * back // pack.amount_minor, pack.amount_minor - back
    left = payout.credits - clawed - used
    assert CreditAccount.objects.get(sponsor=sponsor).balance == left
    owed = -(-kept * left // (payout.credits - clawed))
    (money,) = sheet(month, "liability")
    assert (money["collected"], money["returned"], money["earned by use"], money["closing"]) == (
        pack.amount_minor,
        -back,
        owed - kept,
        owed,
    )
    posted = {row["source"]: row["credits"] for row in sheet(month, "entries")}
    assert posted == {
        "CREDIT_PURCHASE": payout.credits,
        "PAYOUT_CLAWBACK": -clawed,
        "RELAY_TRANSACTION": -used,
    }
    [row] = _exported(month, sponsor)
    assert (row["user"], row["profile"], row["source"], row["currency"]) == (
        "",
        "",
        "CREDIT_PURCHASE",
        currency,
    )
    assert (row["credits used"], row["gas"]) == (used, Decimal(gas) / 10**18)
    assert row["revenue"] == Decimal(kept - owed) / 100
    assert not CreditEntry.objects.filter(account__user=payer.user).exists()


def test_a_call_costs_on_average_what_its_user_and_its_sponsor_pay_together(stripe: FakeBilling) -> None:
    world, sponsor = World(stripe, 1), make_sponsor(50_000)
    [payer], costs = world.payers, [random.randint(100, 4_000) for _ in range(3)]
    entries.grant(user=payer.user, credits=10_000, source="SURVEYS", key=secrets.token_hex(8))
    for cost, share in zip(costs, (100, 100, random.randint(1, 90)), strict=True):
        hold = world.sponsored_hold(payer, make_policy(sponsor, share_percent=share), cost)
        world.mine(payer, hold, cost)
        world.settle(hold, cost)

    average = averages(since=world.now - timedelta(days=1)).call_credits

    assert average is not None
    assert round(average * 3) == sum(costs)


def test_random_months_of_sponsors_tie_to_the_ledger(stripe: FakeBilling) -> None:
    world = World(stripe, 3)
    begins, ends = months(world.now, 1)
    acts = [world.fund_sponsor, world.sponsored_call, world.sponsored_call, world.reverse, world.earn]
    for _ in range(60):
        with world.dated():
            random.choice(acts)(random.choice(world.payers))
    month = _close(world, begins, ends)
    for terms in world.terms:
        sponsor = terms.policy.sponsor
        used = sum(row[1] for row in _of_sponsor(month, sponsor))
        entry_lines, call_lines = (
            _lines(read(sponsor, since=begins, until=ends)) for read in (entry_rows, call_rows)
        )
        assert used == -sum(row["credits"] for row in entry_lines if row["source"] in _OF_CALLS)
        assert used == sum(row["credits"] for row in call_lines if row["status"] == "captured")
        account = CreditAccount.objects.get(sponsor=sponsor)
        assert account.balance == sum(row["credits"] for row in entry_lines)
        assert account.held == sum(row["credits"] for row in call_lines if row["status"] == "held")
