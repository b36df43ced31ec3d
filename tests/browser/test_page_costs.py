"""
What each page of the service costs whoever opens it first: bytes, layout shift, and time on a slow line.

The bytes and the shift are tested with a line that answers late, so that each page is seen before it is whole.
`python -m lab pages` also measures the largest contentful paint at 400 kbit/s, which depends on the machine.
"""

import json
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.conf import settings
from playwright.sync_api import Browser, Page, ViewportSize
from pytest_django.live_server_helper import LiveServer

from credits.models import EntrySource
from credits.services import entries
from sponsors.models import Member
from tests.browser.account_page import DESKTOP, PHONE, Holder, holding, window_of
from tests.browser.admin_client import employ
from tests.portal.history_rows import relayed
from tests.sponsors.sponsorships import make_policy, make_sponsor
from tests.staff import session_of

pytestmark = pytest.mark.django_db(transaction=True)
_LIMITS = json.loads(Path(__file__).with_name("page_costs.json").read_text(encoding="utf-8"))
# The folder of `python -m lab pages`, which judges the figures itself.
_RESULTS = os.environ.get("PAGE_COSTS")
_LINE = {
    "offline": False,
    "latency": 150,
    # Without a measurement, the line is late but wide: the test is short, and sees the same.
    "downloadThroughput": 50_000 if _RESULTS else -1,
    "uploadThroughput": 50_000 if _RESULTS else -1,
}
_OBSERVE = """
window.shifts = []; window.painted = 0;
new PerformanceObserver((list) => list.getEntries().forEach((entry) => {
  const moved = entry.sources.map(({ node }) => node?.id || node?.className || node?.nodeName);
  if (!entry.hadRecentInput) window.shifts.push([entry.value, ...moved]);
})).observe({ type: "layout-shift", buffered: true });
new PerformanceObserver((list) => list.getEntries().forEach(({ startTime }) => { window.painted = startTime; }))
  .observe({ type: "largest-contentful-paint", buffered: true });
"""


class Cost(NamedTuple):
    """Bytes of all responses with their headers, what moved as (value, elements), milliseconds to the largest paint."""

    size: int
    shifts: list[list[Any]]
    painted: float

    @property
    def moved(self) -> float:
        """The sum of all shifts."""
        return float(sum(value for value, *_ in self.shifts))


@pytest.fixture
def compressing() -> Iterator[LiveServer]:
    """A server whose static files pass the middleware that compresses them, as those of a checkout do."""
    server = LiveServer("localhost", start=False)
    thread: Any = server.thread
    thread.static_handler = lambda handler: handler
    server._live_server_modified_settings.enable()
    server.start()
    yield server
    server.stop()
    server._live_server_modified_settings.disable()


@pytest.fixture
def holder(compressing: LiveServer, settings: Any) -> Iterator[Holder]:
    with holding(compressing, settings) as one:
        yield one


def _nobody(page: Page, holder: Holder) -> None:
    """Nobody is signed in."""


def _account(page: Page, holder: Holder) -> None:
    holder.signs_in(page)
    key = secrets.token_hex(8)
    entries.grant(user=holder.user, credits=5_000, source=EntrySource.SURVEYS, key=key)
    relayed(holder.user, 30)


def _sponsor(page: Page, holder: Holder) -> None:
    holder.signs_in(page)
    sponsor = make_sponsor(1_250_000)
    make_policy(sponsor)
    Member.objects.create(sponsor=sponsor, user=holder.user, role="owner")


def _staff(page: Page, holder: Holder) -> None:
    name, value = settings.SESSION_COOKIE_NAME, session_of(employ().user)
    page.context.add_cookies([{"name": name, "value": value, "url": holder.base_url}])


_PAGES: dict[str, tuple[str, Callable[[Page, Holder], None]]] = {
    "landing": ("/", _nobody),
    "account, signed out": ("/account", _nobody),
    "account": ("/account", _account),
    "account, activity": ("/account#activity", _account),
    "account, plan": ("/account#plan", _account),
    "sponsor, signed out": ("/sponsor", _nobody),
    "sponsor": ("/sponsor", _sponsor),
    "sponsor, policies": ("/sponsor#policies", _sponsor),
    "guide": ("/docs/wallets", _nobody),
    "error codes": ("/problems", _nobody),
    "API": ("/api/docs", _nobody),
    "staff, login": ("/admin/login/", _nobody),
    "staff": ("/admin/", _staff),
    "staff, users": ("/admin/users/user/", _staff),
    "staff, search": ("/admin/search/?q=nobody", _staff),
}


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_no_page_weighs_more_or_moves_more_than_its_limits(
    browser: Browser, holder: Holder, size: ViewportSize
) -> None:
    costs = {name: _cost_of(browser, holder, name, size) for name in _PAGES}
    if _RESULTS:
        shown = {name: [cost.size, cost.moved, cost.painted] for name, cost in costs.items()}
        (Path(_RESULTS) / f"{size['width']}.json").write_text(json.dumps(shown), encoding="utf-8")
        return

    assert {name: cost.shifts for name, cost in costs.items() if cost.moved > _LIMITS["shift"]} == {}
    assert {name: cost.size for name, cost in costs.items() if cost.size > _LIMITS["bytes"][name]} == {}


def _cost_of(browser: Browser, holder: Holder, name: str, size: ViewportSize) -> Cost:
    path, prepare = _PAGES[name]
    with window_of(browser, holder, size=size) as page:
        page.add_init_script(_OBSERVE)
        prepare(page, holder)
        line, sizes = page.context.new_cdp_session(page), []
        line.send("Network.enable")
        line.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
        line.send("Network.emulateNetworkConditions", _LINE)
        page.goto(holder.base_url + path)
        page.wait_for_load_state("networkidle")
        shifts, painted = page.evaluate("[window.shifts, window.painted]")
        return Cost(int(sum(sizes)), shifts, painted)
