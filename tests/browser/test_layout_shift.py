"""The account page keeps its place while it loads: nothing that a reader looks at moves."""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from pytest_django.live_server_helper import LiveServer

from credits.models import EntrySource
from credits.services import entries
from tests.browser.account_page import DESKTOP, PHONE, Holder, holding, whole, window_of
from tests.portal.history_rows import relayed

pytestmark = pytest.mark.django_db(transaction=True)
_OBSERVE = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries())
    if (!entry.hadRecentInput) {
      const moved = entry.sources.map(({ node }) => node?.id || node?.className || node?.nodeName);
      window.shifts.push([entry.value, ...moved]);
    }
}).observe({ type: "layout-shift", buffered: true });
"""
# The mark of a page that is comfortable to read (Core Web Vitals: 0.1).
_MOST = 0.05


@pytest.fixture
def holder(live_server: LiveServer, settings: Any) -> Iterator[Holder]:
    with holding(live_server, settings) as one:
        yield one


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_nothing_moves_while_a_section_loads(browser: Browser, holder: Holder, size: Any) -> None:
    with window_of(browser, holder, size=size) as page:
        holder.installs_extension(page)
        holder.signs_in(page)
        key = secrets.token_hex(8)
        entries.grant(user=holder.user, credits=5_000, source=EntrySource.SURVEYS, key=key)
        relayed(holder.user, 30)
        page.add_init_script(_OBSERVE)

        shifts = {
            name: _shifts_of(page, holder, name) for name in ("home", "activity", "plan", "earn", "data")
        }

    assert {name: rows for name, rows in shifts.items() if sum(value for value, *_ in rows) > _MOST} == {}


def _shifts_of(page: Page, holder: Holder, section: str) -> list[Any]:
    page.goto(f"{holder.base_url}/account?{section}#{section}")
    whole(page)
    page.wait_for_load_state("networkidle")
    shifts: list[Any] = page.evaluate("window.shifts")
    return shifts
