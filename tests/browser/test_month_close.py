"""Finance and operations close a month as docs/staff.md describes it, with the number of their clicks."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from accounting.models import Month
from accounting.services import closing
from gateway.common import clock
from tests.accounting.conftest import stripe
from tests.accounting.timeline import months
from tests.accounting.world import World
from tests.browser.accessibility import violations
from tests.browser.admin_client import AdminClient, Scheme, colleague
from tests.browser.test_clerk_stories import Clicks
from tests.fakes.billing import FakeBilling

__all__ = ["stripe"]


@pytest.fixture
def begins(owner_connection: None, live_server: LiveServer, stripe: FakeBilling) -> datetime:
    """Return the beginning of a month in which people have paid and made calls."""
    world = World(stripe, 2)
    first, second = months(world.now, 1)
    for payer in world.payers:
        for move in (world.subscribe, world.buy, world.call, world.call):
            world.move_to(world.now + timedelta(hours=20))
            with world.dated():
                move(payer)
            world.deliver()
    world.move_to(second + timedelta(hours=30))
    return first


def test_a_month_is_closed_with_eleven_clicks_of_two_staff_members(
    admin_in: Callable[[Scheme], AdminClient], begins: datetime
) -> None:
    finance = admin_in("light")
    page = finance.enter(colleague("finance"))
    clicks = Clicks(page)
    clicks.on(_menu(page, "Months"))
    clicks.on(_action(page, "Prepare a month"))
    page.locator("[name=month]").fill(f"{begins:%Y-%m}")
    finance.picture("month-prepare")
    clicks.on(_confirm(page, "Prepare a month"))
    clicks.on(page.locator("#result_list tbody").get_by_role("link").first)
    expect(page.get_by_text(f"A worker prepares {begins:%Y-%m}.")).to_be_visible()
    assert closing.prepare_waiting(now=clock.now()) == 1
    # Without a click: the page reloads itself.
    expect(page.get_by_text("Rates of the coin are missing")).to_be_visible()
    finance.picture("month-with-problems")

    more = Clicks(page)
    more.on(_menu(page, "Coin rates"))
    more.on(_action(page, "Import rates"))
    page.locator("[name=rates]").fill(_rates(begins))
    finance.picture("rates")
    more.on(_confirm(page, "Import rates"))
    assert closing.prepare_waiting(now=clock.now()) == 1
    more.on(_menu(page, "Months"))
    more.on(page.locator("#result_list tbody").get_by_role("link").first)
    assert more.count == 5

    finance.picture("month")
    assert violations(page) == []
    with page.expect_download() as download:
        page.get_by_role("link", name="XLSX").click()
        clicks.count += 1
    assert download.value.suggested_filename == f"month-{begins:%Y-%m}-open.xlsx"
    clicks.on(_action(page, "Close the month"))
    page.locator("[name=reason]").fill("Month close")
    finance.picture("month-close")
    clicks.on(_confirm(page, "Close the month"))
    expect(page.get_by_text("waits for a second person").first).to_be_visible()

    operations = admin_in("light")
    page = operations.enter(colleague("operations"))
    others = Clicks(page)
    others.on(_menu(page, "Approval requests"))
    others.on(page.locator("#result_list tbody").get_by_role("link").first)
    others.on(_action(page, "Approve"))
    page.locator("[name=reason]").fill("Compared with Stripe")
    others.on(_confirm(page, "Approve"))
    operations.picture("month-approved")
    assert (clicks.count + others.count, Month.objects.get().status) == (11, "closed")
    expect(finance.page.get_by_text("and never changes again").first).to_be_visible()
    assert "None." not in finance.page.locator("#content").inner_text()


def _menu(page: Page, name: str) -> Any:
    return page.locator("#nav-sidebar").get_by_role("link", name=name)


def _action(page: Page, name: str) -> Any:
    return page.locator("[data-staff-actions]").get_by_role("link", name=name, exact=True)


def _confirm(page: Page, name: str) -> Any:
    return page.locator("form[method=post]").get_by_role("button", name=name, exact=True)


def _rates(begins: datetime) -> str:
    days = [begins + timedelta(days=number) for number in range(31)]
    return "\n".join(
        f"{day:%Y-%m-%d},{currency},1.25" for day in days for currency in settings.BILLING_CURRENCIES
    )
