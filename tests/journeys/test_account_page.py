"""The account holder's page, from never having been here to a deleted account, in a browser with an extension."""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

from devstack.extension import extension_script
from tests.browser.admin_client import AdminClient
from tests.browser.chromium import PATIENCE_MILLISECONDS
from tests.factories import random_address
from tests.journeys.people import Person
from tests.journeys.stack import Stack
from tests.journeys.waiting import until

pytestmark = pytest.mark.journey
# A user who was here some days ago, on a day whose seed is public by now, and whose entries are under a root.
_PAST = """
from datetime import timedelta
from django.utils.timezone import now
from checkin.services import checkins, seeds
from proofs.services.roots import close_roots
from users.models import User
user = User.objects.get(profile_address="{address}")
checkins.execute(user=user, now=now() - timedelta(days=3))
seeds.commit_and_reveal(now=now())
close_roots()
"""
_PHONE = ViewportSize(width=390, height=850)
_CARD = "pm_card_authenticationRequired"
_INSTALL = """
window.extension = installExtension({{
  profiles: [{profile}], privateKey: {key}, node: {{ request: (request) => window.askNode(request) }},
  approves: ({{ method }}) => !(window.declined ?? []).includes(method),
}});
"""


@pytest.fixture
def window(browser: Browser, stack: Stack) -> Iterator[AdminClient]:
    """A browser window in which nothing may go wrong unseen, as narrow as a phone's."""
    context = browser.new_context(viewport=_PHONE, accept_downloads=True)
    context.set_default_timeout(PATIENCE_MILLISECONDS)
    client = AdminClient(context.new_page(), stack.web.url)
    yield client
    context.close()
    # Cards are entered at Stripe's own pages, and a browser notes the response that leads to 3-D Secure.
    expected = (f"{stack.provider.url}/", "/api/payments/upsertSubscription")
    assert [text for text in client.complaints if not any(part in text for part in expected)] == []


def install_extension(page: Page, person: Person, private_key: str) -> None:
    """Put an extension into the page that holds the person's profile; its node is asked by us, as no page may."""
    page.expose_function(
        "askNode", lambda request: person.wallet.rpc.call(request["method"], *request.get("params", []))
    )
    profile, key = json.dumps(person.profile.profile_address), json.dumps(private_key)
    page.add_init_script(extension_script() + _INSTALL.format(profile=profile, key=key))


def section(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="My account").get_by_role("link", name=name, exact=True).click()
    expect(page.locator("#content")).to_have_attribute("aria-busy", "false")


def outcome(page: Page) -> Locator:
    """Return the place that shows the outcome of an action."""
    return page.locator("#message")


def give_card(page: Page, button: str) -> None:
    """Choose a card at Stripe whose bank always asks, and complete what the bank asks for."""
    page.get_by_label("Test card").select_option(_CARD)
    page.get_by_role("button", name=button).click()
    page.get_by_role("button", name="Complete").click()


def subscribe(window: AdminClient, stack: Stack) -> None:
    """Begin a subscription with card and 3-D Secure at Stripe, look around there, and cancel it."""
    page, provider, here = window.page, f"{stack.provider.url}/**", f"{stack.web.url}/account#plan"
    section(page, "Plan")
    page.get_by_label("Amount per month").fill("25,50")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("dialog").get_by_role("button", name="Subscribe and pay").click()
    page.wait_for_url(provider)
    give_card(page, "Save")
    # The page continues by itself, and the bank wants a confirmation; the user looks at the page once more before.
    expect(page.get_by_role("button", name="Pay", exact=True)).to_be_visible()
    page.goto(here)
    expect(page.get_by_text("Your bank wants you to confirm the payment")).to_be_visible()
    page.get_by_role("link", name="Pay the open invoice").click()
    page.wait_for_url(provider)
    give_card(page, "Pay")
    expect(page.get_by_text("25.50 USD, paid")).to_be_visible()
    page.goto(here)
    expect(page.get_by_role("table", name="Invoices")).to_contain_text("paid")
    expect(page.get_by_role("link", name="View", exact=True)).to_have_attribute(
        "href", re.compile(stack.provider.url)
    )
    page.get_by_role("button", name="Open Stripe's customer portal").click()
    page.get_by_role("link", name="Return").click()
    page.get_by_label("E-mail address for receipts").fill("somebody@wallet.example")
    page.get_by_role("button", name="Save the address").click()
    expect(outcome(page)).to_contain_text("Saved. Only Stripe stores this address")
    expect(page.get_by_label("E-mail address for receipts")).to_have_value("somebody@wallet.example")
    page.get_by_role("button", name="Cancel the plan").click()
    page.get_by_role("button", name="Cancel at the end of the period").click()
    expect(page.get_by_role("button", name="Resume at $25.50")).to_be_visible()


def delete_account(window: AdminClient, stack: Stack, person: Person) -> None:
    """Have the account deleted, once the box is ticked; nothing of it is left at Stripe soon after."""
    page, address = window.page, person.profile.profile_address
    section(page, "Data")
    page.get_by_role("button", name="Delete my account").click()
    expect(page.get_by_text("Tick the box first")).to_be_visible()
    page.get_by_label("I want to delete my account permanently").check()
    page.get_by_role("button", name="Delete my account").click()
    expect(page.get_by_text("Your account is closed and its data is being erased")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0
    assert person.api.ask("/api/user/dashboardInfo").status == 401
    until("nothing is left at Stripe", lambda: stack.records.has_left_stripe(address))


def test_a_user_signs_in_relays_checks_in_subscribes_exports_data_and_leaves(
    window: AdminClient, stack: Stack, person: Person
) -> None:
    page, target = window.page, random_address()
    install_extension(page, person, person.wallet.controller_key)
    window.open("/")
    page.get_by_role("link", name="Open my account").first.click()
    sign_in = page.get_by_role("button", name="Sign in with Universal Profiles")
    expect(sign_in).to_be_visible()
    sign_in.click()
    page.get_by_role("button", name="Add to my wallet").click()
    expect(outcome(page)).to_contain_text("Your wallet now uses this service for 1 profile")
    page.get_by_text("Try it").click()
    page.get_by_label("To address").fill(target)
    page.get_by_label("Amount in LYX").fill("0.000000000000000001")
    page.get_by_role("button", name="Send with my wallet").click()
    expect(outcome(page)).to_contain_text("Transaction done, for")
    sent = outcome(page).locator("code").get_attribute("title") or ""

    assert person.status(sent)["status"] == "Success"
    assert int(person.wallet.rpc.call("eth_getBalance", target, "latest"), 16) == 1
    past = _PAST.format(address=person.profile.profile_address)
    stack.manage("shell", "-c", past).check_returncode()
    section(page, "Activity")
    expect(page.locator(".timeline")).to_contain_text(f"LYX to {target[:6]}")
    expect(page.get_by_role("img", name="Credits spent per day")).to_be_visible()
    page.get_by_text("Proof of the ledger").click()
    page.get_by_role("button", name="Verify my entries").click()
    expect(
        page.get_by_text(re.compile("^[1-9][0-9]* entries are included unchanged in signed roots"))
    ).to_be_visible()
    section(page, "Home")
    page.get_by_role("button", name="Check in", exact=True).click()
    expect(page.get_by_text("You won")).to_be_visible()
    page.get_by_text("Proof that draws are fair").click()
    page.get_by_role("button", name="Verify my draws").click()
    computed = page.get_by_role("table", name="Your verified draws")
    expect(computed.get_by_text("same result", exact=True)).to_have_count(1)
    subscribe(window, stack)
    section(page, "Data")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download everything").click()
    data = json.loads(download.value.path().read_text())
    assert data["profileAddress"] == person.profile.profile_address
    assert sent in {row["transaction_hash"] for row in data["transactions"]}
    page.get_by_role("button", name="Sign out everywhere").click()
    expect(page.get_by_text("You are signed out everywhere")).to_be_visible()
    page.get_by_role("button", name="Sign in with Universal Profiles").click()
    delete_account(window, stack, person)


def test_the_page_reports_declined_signatures_and_refused_requests(
    browser: Browser, stack: Stack, person: Person
) -> None:
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MILLISECONDS)
    page = context.new_page()
    install_extension(page, person, stack.newcomer().wallet.controller_key)
    page.add_init_script("window.declined = ['personal_sign']")
    page.goto(f"{stack.web.url}/account")
    page.get_by_role("button", name="Sign in with Universal Profiles").click()
    expect(page.get_by_role("alert")).to_contain_text("You declined the request in the wallet")

    page.evaluate("window.declined = []")
    page.get_by_role("button", name="Sign in with Universal Profiles").click()
    expect(page.get_by_role("link", name="What does this mean?")).to_have_attribute(
        "href", "/problems/signature-not-by-controller"
    )
    assert page.evaluate("sessionStorage.length") == 0
    context.close()
