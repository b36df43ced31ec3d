"""Every action of the account page and of a sponsor's page fails: the page stays, and the control says why."""

import random
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect
from pytest_django.live_server_helper import LiveServer

from credits.models import EntrySource
from credits.services import entries
from tests.browser.account_page import Holder, Shop, fault, holding, whole, window_of
from tests.browser.test_sponsor_page import busy, owned, posted_to
from tests.factories import random_address
from tests.portal.history_rows import relayed
from tests.users.auth_client import signed_in

pytestmark = pytest.mark.django_db(transaction=True)
_STATUSES = (402, 403, 404, 409, 422, 429, 500, None)
_VALUES = {
    "email": "ada@example.org",
    "url": "https://hooks.example.org/relay",
    "transactionHash": "0x" + secrets.token_hex(32),
    "slug": "my-dapp",
    "amount": "25.50",
}
# The actions that make a request, by section.
_ACCOUNT = {
    "home": {"Add to my wallet", "Check in", "Send with my wallet"},
    "activity": {"Show older", "Verify my entries"},
    "plan": {"Buy", "Buy for $10.00", "Continue", "Save the address", "Turn on"},
    "data": {
        "Delete my account",
        "Download everything",
        "Save the address",
        "Sign out everywhere",
        "Sign out there",
    },
}
_SPONSOR = {
    "overview": {"Calls as a spreadsheet", "Entries as a spreadsheet"},
    "policies": {"Ask", "Preview"},
    "funds": {"Buy for $10.00", "Save the alarm"},
    "webhooks": {"Add the endpoint", "Delete", "Deliveries", "New secret", "Send a test"},
    "access": {"Add the member", "Create the key", "Leave", "Open the sponsor", "Send the invitation"},
}
# Fills all fields in, and opens what is folded.
_FILL = """values => {
  for (const one of document.querySelectorAll("#content details")) one.open = true;
  for (const one of document.querySelectorAll("#content :is(input, textarea)")) {
    if (one.type === "checkbox") { if (!one.checked) one.click(); continue; }
    if (one.type === "radio" || one.value || one.disabled) continue;
    one.value = values[one.name] ?? (one.inputMode === "numeric" || one.type === "number" ? "3000" :
      /address|contract|profile|token|signer|to$/i.test(one.name) ? values.someone : "words");
    one.dispatchEvent(new Event("input", { bubbles: true }));
  }
}"""
_HEADINGS = "[...document.querySelectorAll('#content h2')].map((one) => one.textContent)"
_BESIDE = "button => (button.closest('.actions') ?? button).nextElementSibling?.matches('.fault') ?? false"


class Line:
    """A line on which every request of the API fails once it is cut."""

    def __init__(self, page: Page) -> None:
        self.status: int | None = None
        self.is_cut, self.failed = False, 0
        page.route("**/api/**", self._answer)

    def _answer(self, route: Route) -> None:
        if not self.is_cut:
            route.fallback()
            return
        self.failed += 1
        if self.status is None:
            route.abort("timedout")
            return
        problem = {"code": "not-today", "status": self.status, "title": "No", "detail": "Not today."}
        headers = {"content-type": "application/problem+json", "retry-after": "60"}
        route.fulfill(status=self.status, headers=headers, json={"type": "/problems/not-today", **problem})


@pytest.fixture
def holder(live_server: LiveServer, settings: Any) -> Iterator[Holder]:
    settings.EMAIL_HOST = "mail.example"
    with holding(live_server, settings) as one:
        yield one


@pytest.mark.parametrize("name", _ACCOUNT)
def test_a_failed_action_of_an_account_is_explained_beside_its_control(
    browser: Browser, holder: Holder, name: str
) -> None:
    with window_of(browser, holder) as page:
        holder.installs_extension(page)
        holder.signs_in(page)
        signed_in(holder.profile)
        key = secrets.token_hex(8)
        entries.grant(user=holder.user, credits=5_000, source=EntrySource.SURVEYS, key=key)
        relayed(holder.user, 30)
        shop = Shop()
        page.route("**/api/payments/packs", shop.packs)
        page.route("**/api/payments/topUp", shop.top_up)
        tried = _tried(page, f"{holder.base_url}/account#{name}")

    assert tried >= _ACCOUNT[name], tried


@pytest.mark.parametrize("name", _SPONSOR)
def test_a_failed_action_of_a_sponsor_is_explained_beside_its_control(
    browser: Browser, holder: Holder, name: str
) -> None:
    with window_of(browser, holder) as page:
        sponsor = owned(holder, page)
        busy(sponsor)
        posted_to(sponsor, 204, 503)
        page.route("**/api/payments/packs", Shop().packs)
        tried = _tried(page, f"{holder.base_url}/sponsor#{name}")

    assert tried >= _SPONSOR[name], tried


def _tried(page: Page, address: str) -> set[str]:
    """Press every button of the section on a line that fails; return those that made a request."""
    line = Line(page)
    page.goto(address)
    whole(page)
    page.wait_for_load_state("networkidle")
    page.evaluate(_FILL, _VALUES | {"someone": random_address()})
    page.wait_for_load_state("networkidle")
    headings, tried = page.evaluate(_HEADINGS), set()
    buttons = page.locator("#content button:visible")
    for place in range(buttons.count()):
        button = buttons.nth(place)
        if not button.is_enabled():
            continue
        line.is_cut, line.failed, line.status = True, 0, random.choice(_STATUSES)
        name = button.inner_text()
        _press(page, button)
        if line.failed:
            tried.add(name)
            words = "The service cannot be reached" if line.status is None else "Not today."
            what = f"{name}: {line.status}"
            expect(fault(page), what).to_contain_text(words)
            assert button.evaluate(_BESIDE), what
            assert page.evaluate(_HEADINGS) == headings, what
            fault(page).get_by_role("button", name="Close").click()
        line.is_cut = False
    return tried


def _press(page: Page, button: Locator) -> None:
    button.click()
    agree = page.locator("dialog[open] button[value=yes]")
    page.wait_for_timeout(100)
    if agree.count():
        agree.click()
    expect(button).to_be_enabled()
