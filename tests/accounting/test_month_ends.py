"""Money that moves at the end of a month, accounts that are erased, and months that are closed with a difference."""

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from accounting.errors import MonthNotReady
from accounting.models import Month
from accounting.rules import Match, Moved, matched
from tests.accounting.timeline import months, sheet
from tests.accounting.world import World
from tests.database import tamper
from tests.fakes.billing import FakeBilling
from tests.staff import approve, browser_of, confirm, messages_of

pytestmark = pytest.mark.django_db


def _paid(stripe: FakeBilling, people: int = 1) -> tuple[World, str]:
    """Return a world in which one person has paid, and the payment."""
    world = World(stripe, people)
    payer = world.payers[0]
    with world.dated():
        payer.upsert(2_550)
    world.deliver()
    return world, payer.payout.stripe_payment_intent_id


def _returns(month: Month) -> dict[str, Any]:
    (row,) = sheet(month, "refunds and disputes")
    return row


@pytest.mark.parametrize("is_read_before_the_third", [True, False])
def test_three_refunds_of_one_payment_around_midnight_differ_in_no_month(
    stripe: FakeBilling, is_read_before_the_third: bool
) -> None:
    world, payment = _paid(stripe)
    january, february, march = months(stripe.now(), 2)
    world.move_to(february - timedelta(days=2))
    stripe.refund(payment, 100)
    world.deliver()
    world.jump_to(february - timedelta(seconds=40))
    stripe.refund(payment, 200)
    world.pass_time(24 * 60 + 40)
    if is_read_before_the_third:
        world.deliver()
    world.pass_time(3 * 3600)
    stripe.refund(payment, 300)
    world.deliver()
    world.jump_to(march + timedelta(hours=30))

    first = world.close(world.prepare(january))
    second = world.close(world.prepare(february))

    rows = [_returns(month) for month in (first, second)]
    titles = (
        "at Stripe",
        "posted in a later month",
        "moved in an earlier month",
        "in our rows",
        "difference",
    )
    assert [[row[title] for title in titles] for row in rows] == [
        [300, -200, 0, 100, 0],
        [300, 0, 200, 500, 0],
    ]
    assert [row["what differs"] for row in rows] == ["", ""]
    assert (first.differences, second.differences) == ("", "")


@pytest.mark.parametrize(
    ("at_stripe", "in_rows", "wanted"),
    [
        ([(1, 5)], [(2, 5)], [(1, 2, 5)]),
        ([(1, 2), (3, 3)], [(4, 5)], [(1, 4, 2), (3, 4, 3)]),
        # The refund of 2 was never read, and the others were.
        ([(1, 2), (3, 3), (5, 4)], [(4, 3), (6, 4)], [(3, 4, 3), (5, 6, 4), (1, None, 2)]),
        ([(1, 2)], [(2, 3)], [(None, 2, 3), (1, None, 2)]),
        # A refund failed before it was read, and another one after.
        ([(1, 2), (2, -2), (3, 3)], [(4, 3)], [(1, 4, 2), (2, 4, -2), (3, 4, 3)]),
        ([(1, 2), (2, -2)], [], [(1, 2, 2), (2, 2, -2)]),
    ],
)
def test_movements_are_matched_with_the_rows_that_read_them(
    at_stripe: list[tuple[int, int]], in_rows: list[tuple[int, int]], wanted: list[tuple[int | None, ...]]
) -> None:
    def at(day: int | None) -> datetime | None:
        return None if day is None else datetime(2026, 1, day, tzinfo=UTC)

    def moves(rows: list[tuple[int, int]]) -> list[Moved]:
        return [Moved(datetime(2026, 1, day, tzinfo=UTC), minor) for day, minor in rows]

    found = list(matched(moves(at_stripe), moves(in_rows)))
    assert found == [Match(at(moved), at(known), minor or 0) for moved, known, minor in wanted]


def test_a_month_with_a_difference_is_closed_with_its_reason_only(
    stripe: FakeBilling, short_sidebar: None
) -> None:
    world, payment = _paid(stripe)
    january, february = months(stripe.now(), 1)
    stripe.refund(payment, 70)
    world.deliver()
    world.jump_to(february + timedelta(hours=30))
    tamper("DELETE FROM payments_moneyreturn")
    month = world.prepare(january)
    assert month.problems == []
    (line,) = month.differences.splitlines()
    assert line.startswith("refunds and disputes, ")
    assert ": 0.70. payout " in line
    with pytest.raises(MonthNotReady, match="Give the reason of each difference"):
        world.close(month)
    finance = browser_of(world.finance)
    assert "Give the reason" in messages_of(confirm(finance, "accounting_month", "close", month))
    assert Month.objects.get().status == "open"

    why = f"counted by hand, ticket {secrets.token_hex(4)}"
    assert "waits for a second person" in messages_of(
        confirm(finance, "accounting_month", "close", month, explanation=why)
    )
    approve("operations")
    month.refresh_from_db()
    assert (month.status, month.explanation) == ("closed", why)
    page: Any = finance.get(f"/admin/accounting/month/{month.pk}/change/")
    assert line in page.content.decode()
    assert why in page.content.decode()


def test_credits_and_debt_of_erased_people_leave_the_sheet_in_their_month(stripe: FakeBilling) -> None:
    world, _ = _paid(stripe, people=3)
    january, february, march = months(stripe.now(), 2)
    payer, credits_left = world.payers[0], world.payers[0].balance
    world.move_to(february - timedelta(days=1))
    with world.dated():
        world.leave(payer)
    world.deliver()
    world.jump_to(march + timedelta(hours=30))
    first, second = (world.close(world.prepare(begins)) for begins in (january, february))
    for month, wanted in ((first, (0, -credits_left, 0)), (second, (0, 0, 0))):
        kinds = {row["kind"]: row for row in sheet(month, "credits")}
        assert (
            tuple(kinds["balance"][title] for title in ("opening", "of erased people", "closing")) == wanted
        )
    assert (first.closing["paid"], second.closing["paid"]) == (0, 0)
