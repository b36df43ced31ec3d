"""The account holder's page, from never having been here to a relayed call, in a browser with an extension."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from devstack.files import PROJECT
from tests.browser.accessibility import violations
from tests.browser.admin_client import AdminClient
from tests.factories import random_address
from tests.journeys.people import Person
from tests.journeys.stack import Stack

pytestmark = pytest.mark.journey
_EXTENSION = (PROJECT / "devstack/extension/extension.js").read_text()
_INSTALL = """
window.extension = installExtension({{
  profiles: [{profile}], privateKey: {key}, node: {{ request: (asked) => window.askNode(asked) }},
  approves: ({{ method }}) => !(window.declined ?? []).includes(method),
}});
"""


@pytest.fixture(params=[("desktop", 1280, "light"), ("phone", 390, "dark")], ids=["desktop", "phone"])
def window(
    request: pytest.FixtureRequest, browser: Browser, stack: Stack, pictures: Path
) -> Iterator[AdminClient]:
    """A browser window of some size and colour scheme, in which nothing may go wrong unseen."""
    name, width, scheme = request.param
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": width, "height": 850}, accept_downloads=True
    )
    client = AdminClient(context.new_page(), stack.web.url, pictures / name)
    yield client
    context.close()
    # Cards are entered at Stripe's own pages.
    assert [text for text in client.complaints if f"{stack.provider.url}/" not in text] == []


def look(window: AdminClient, name: str) -> None:
    """Keep a picture of the page, and see that everybody can use it."""
    window.picture(name)
    assert violations(window.page) == []


def install_extension(page: Page, person: Person, private_key: str) -> None:
    """Put an extension into the page that holds the person's profile; its node is asked by us, as no page may."""
    page.expose_function(
        "askNode", lambda asked: person.wallet.rpc.call(asked["method"], *asked.get("params", []))
    )
    profile, key = json.dumps(person.profile.profile_address), json.dumps(private_key)
    page.add_init_script(_EXTENSION + _INSTALL.format(profile=profile, key=key))


def section(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="My account").get_by_role("link", name=name, exact=True).click()
    expect(page.locator("#content")).to_have_attribute("aria-busy", "false")


def subscribe(window: AdminClient, stack: Stack) -> None:
    """Begin a subscription: the card is captured at Stripe, and the page goes on where it was."""
    page = window.page
    section(page, "Subscription")
    page.get_by_label("A month").fill("25.50")
    page.get_by_role("button", name="Subscribe").click()
    page.wait_for_url(f"{stack.provider.url}/**")
    page.get_by_label("Test card").select_option("pm_card_visa")
    page.get_by_role("button", name="Save").click()
    page.wait_for_url(f"{stack.web.url}/account#subscription")
    expect(page.get_by_label("A month")).to_have_value("25.50")
    page.get_by_role("button", name="Subscribe").click()
    expect(page.get_by_role("status")).to_contain_text("a month. The credits arrive")
    expect(page.get_by_role("table", name="Invoices")).to_contain_text("paid")
    look(window, "subscription")
    page.get_by_role("button", name="Cancel at the end of the period").click()
    expect(page.get_by_role("status")).to_contain_text("ends with the running period")


def test_somebody_signs_in_relays_checks_in_subscribes_and_takes_the_data_along(
    window: AdminClient, stack: Stack, person: Person
) -> None:
    page, target = window.page, random_address()
    install_extension(page, person, person.wallet.controller_key)
    window.open("/")
    look(window, "landing")
    page.get_by_role("link", name="Open my account").first.click()
    sign_in = page.get_by_role("button", name="Sign in with Universal Profiles")
    expect(sign_in).to_be_visible()
    look(window, "sign-in")
    sign_in.click()
    page.get_by_role("button", name="Add this relayer to my extension").click()
    expect(page.get_by_role("status")).to_contain_text("relays this profile through this service now")
    page.get_by_text("Try it").click()
    page.get_by_label("Send LYX to").fill(target)
    page.get_by_label("Amount").fill("0.000000000000000001")
    page.get_by_role("button", name="Send through the extension").click()
    expect(page.get_by_role("status")).to_contain_text("Success, for")
    sent = page.get_by_role("status").inner_text().split(":")[0]

    assert person.status(sent)["status"] == "Success"
    assert int(person.wallet.rpc.call("eth_getBalance", target, "latest"), 16) == 1
    section(page, "History")
    expect(page.get_by_role("table", name="Transactions that were relayed")).to_contain_text("Success")
    page.get_by_role("button", name="Verify my entries").click()
    expect(page.get_by_text("entries are under signed roots as they were posted")).to_be_visible()
    look(window, "history")
    section(page, "Overview")
    expect(page.get_by_role("img", name="Credits spent a day")).to_be_visible()
    look(window, "overview")
    section(page, "Check-in")
    page.get_by_role("button", name="Check in", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("You drew")
    look(window, "check-in")
    subscribe(window, stack)
    section(page, "Sessions and data")
    look(window, "sessions-and-data")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download all as JSON").click()
    data = json.loads(download.value.path().read_text())
    assert data["profileAddress"] == person.profile.profile_address
    assert sent in {row["transaction_hash"] for row in data["transactions"]}
    page.get_by_role("button", name="Sign out everywhere").click()
    expect(page.get_by_role("status")).to_contain_text("signed out everywhere")
    assert person.api.ask("/api/user/dashboardInfo").status == 401


def test_what_the_person_declines_and_what_the_service_refuses_is_said(
    browser: Browser, stack: Stack, person: Person, pictures: Path
) -> None:
    context = browser.new_context()
    page = context.new_page()
    install_extension(page, person, stack.newcomer().wallet.controller_key)
    page.add_init_script("window.declined = ['personal_sign']")
    page.goto(f"{stack.web.url}/account")
    page.get_by_role("button", name="Sign in with Universal Profiles").click()
    expect(page.get_by_role("status")).to_contain_text("You declined it in the extension")

    page.evaluate("window.declined = []")
    page.get_by_role("button", name="Sign in with Universal Profiles").click()
    expect(page.get_by_role("link", name="What does this mean?")).to_have_attribute(
        "href", "/problems/signature-not-by-controller"
    )
    assert page.evaluate("sessionStorage.length") == 0
    context.close()
