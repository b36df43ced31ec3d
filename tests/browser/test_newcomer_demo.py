"""The demo of newcomers on a real chain: its page, its server, and who learns which key; SCREENSHOTS keeps pictures."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import urllib3
from django.utils import timezone
from eth_account import Account
from playwright.sync_api import Browser, Page, Request, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from devstack.files import PROJECT
from devstack.ports import free_port
from devstack.services.stack import Services
from devstack.toolchain import TYPESCRIPT_CLIENT, install_node_packages
from gateway.chain.signing import get_signer
from relay.models import ProfileCreation, RelayTransaction
from relay.services.fleet import relayers
from sponsors.models import Member, ProfileRule, Purpose, Sponsor
from sponsors.services import keys
from tests.browser.accessibility import violations
from tests.browser.account_page import PHONE
from tests.browser.chromium import PATIENCE_MILLISECONDS
from tests.clients.running import PYTHON_CLIENT, work
from tests.relay.creating import all_rows
from tests.sponsors.api.callers import member_of
from tests.sponsors.sponsorships import make_policy, make_sponsor
from tests.users.trusted import trust_code

pytestmark = pytest.mark.django_db(transaction=True)
DEMO = PROJECT / "clients/newcomer/server.py"
_CREDITS = 100_000
_WORK_MILLISECONDS = 50


@dataclass
class Demo:
    """The running demo: its server, its sponsor, and what its page has sent and received."""

    sponsor: Sponsor
    api_key: str
    url: str
    hosts: set[str]
    process: subprocess.Popen[str]
    services: Services
    sent: list[str] = field(default_factory=list)
    received: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def open(self, page: Page) -> None:
        """Open the page, and record its traffic."""
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", self._record)
        page.on("response", lambda response: self.received.append(response.text()))
        page.goto(self.url)

    def _record(self, request: Request) -> None:
        self.sent.append(f"{request.url} {request.headers} {request.post_data}")
        if not request.url.startswith((*self.hosts, "data:")):
            self.complaints.append(f"foreign request: {request.url}")

    def work_until(self, page: Page, selector: str) -> None:
        """Do the work of worker and beat until the page shows an element."""
        deadline = time.monotonic() + PATIENCE_MILLISECONDS / 1000
        while not page.locator(selector).is_visible():
            assert time.monotonic() < deadline, f"no {selector}"
            if selector != "#failure":
                assert not page.locator("#failure").is_visible(), page.locator("#failure").inner_text()
            work(self.services)
            page.wait_for_timeout(_WORK_MILLISECONDS)


@pytest.fixture
def demo(services: Services, live_server: LiveServer, tmp_path: Path, settings: Settings) -> Iterator[Demo]:
    """A sponsor that pays for the first two calls of new profiles, but for no profile yet, and its server."""
    install_node_packages(TYPESCRIPT_CLIENT, "what the TypeScript client is made with")
    settings.AUTH_DOMAIN = live_server.url.removeprefix("http://")
    settings.CORS_ALLOW_ALL_ORIGINS = True
    code = services.world.implementations
    trust_code(profile=code.universal_profile, key_manager=code.key_manager)
    services.world.fund(10**18, *get_signer().addresses())
    relayers.sync(now=timezone.now())
    sponsor = make_sponsor(_CREDITS)
    make_policy(sponsor, profiles=ProfileRule.NEW, new_since=timezone.now(), user_calls=2)
    api_key = keys.create(
        sponsor=sponsor,
        name="server",
        scopes=["create"],
        networks=[],
        actor=member_of(sponsor, Member.Role.MANAGER),
        now=timezone.now(),
    ).text
    stack = {
        "base_url": live_server.url,
        "rpc_url": services.rpc_url,
        "sponsor": {"name": sponsor.slug, "create_key": api_key},
    }
    (tmp_path / "stack.json").write_text(json.dumps(stack))
    path = os.pathsep.join([str(PYTHON_CLIENT / "src"), *sys.path])
    url = f"http://127.0.0.1:{free_port()}"
    process = subprocess.Popen(
        [sys.executable, DEMO, tmp_path / "stack.json", url.rsplit(":", 1)[1]],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == f"Newcomers of {sponsor.slug}: {url}\n"
    running = Demo(sponsor, api_key, url, {url, live_server.url, services.rpc_url}, process, services)
    yield running
    process.kill()
    process.communicate()
    assert running.complaints == []


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A phone at night."""
    context = browser.new_context(viewport=PHONE, color_scheme="dark")
    context.set_default_timeout(PATIENCE_MILLISECONDS)
    yield context.new_page()
    context.close()


def _picture(page: Page, pictures: Path | None, name: str) -> None:
    """Check the page in both colour schemes and its width; keep a picture where one is wanted."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == [], scheme
        if pictures:
            page.screenshot(path=pictures / f"newcomer-{name}-{scheme}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_a_newcomer_without_a_coin_posts_by_keyboard_and_the_keys_stay_where_they_are(
    demo: Demo, page: Page, pictures: Path | None
) -> None:
    make_policy(demo.sponsor, purpose=Purpose.PROFILES, window_calls=1, window_seconds=86_400)
    demo.open(page)
    _picture(page, pictures, "before")
    page.keyboard.press("Tab")
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type("Guten Tag, 世界! <b>")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    demo.work_until(page, "#result")

    row = ProfileCreation.objects.get()
    result = page.locator("#result")
    expect(result).to_be_focused()
    expect(result.locator("p")).to_have_text("Guten Tag, 世界! <b>")
    expect(page.get_by_role("heading", level=2)).to_have_text(row.profile_address)
    expect(result).to_contain_text(f"Paid by {demo.sponsor.slug}. You paid 0 credits and 0 LYX.")
    _picture(page, pictures, "after")
    deployment, call = RelayTransaction.objects.order_by("pk")
    assert (deployment.status, call.status) == ("Success", "Success")
    expect(page.locator("#steps li").nth(2)).to_contain_text(call.transaction_hash)
    demo.sponsor.credit_account.refresh_from_db()
    assert demo.sponsor.credit_account.balance == _CREDITS - deployment.real_cost - call.real_cost

    # The same key asks again, as after a lost response, and gets the same profile; the sponsor pays for no second one.
    page.evaluate("localStorage.removeItem('newcomer.profile')")
    page.reload()
    page.get_by_label("What do you want to say?").fill("Again")
    page.get_by_role("button", name="Post it").click()
    demo.work_until(page, "#result")
    expect(result.locator("p")).to_have_text("Again")
    assert (ProfileCreation.objects.count(), RelayTransaction.objects.count()) == (1, 3)

    key = page.evaluate("localStorage.getItem('newcomer.key')")
    assert row.controllers[0]["address"] == Account.from_key(key).address
    assert not [each for each in demo.sent if key[2:] in each.lower()]
    assert not [each for each in demo.sent + demo.received if demo.api_key in each]


def test_each_failure_says_what_to_do_and_the_next_try_continues_with_the_same_profile(
    demo: Demo, page: Page, pictures: Path | None
) -> None:
    demo.open(page)
    send, failure = page.get_by_role("button", name="Post it"), page.get_by_role("alert")
    before = all_rows()
    send.click()
    expect(failure).to_contain_text("Its owner adds a policy for it on the service’s page /sponsor.")
    expect(failure).to_be_focused()
    _picture(page, pictures, "refused")
    assert all_rows() == before

    make_policy(demo.sponsor, purpose=Purpose.PROFILES, origin_calls=1)
    page.get_by_role("button", name="Try again").click()
    demo.work_until(page, "#result")
    expect(failure).to_be_hidden()
    for outcome in ("#result", "#failure"):
        send.click()
        demo.work_until(page, outcome)
    expect(failure).to_contain_text("Start over with a new key to see it again.")

    # Another key of the same network: one more profile than the policy pays for.
    page.evaluate("localStorage.clear()")
    send.click()
    expect(failure).to_contain_text("It pays for more profiles of your network tomorrow.")

    demo.process.kill()
    demo.process.wait()
    before = all_rows()
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.get_by_role("button", name="Start over").click()
    assert page.evaluate("localStorage.getItem('newcomer.key')")
    page.evaluate("localStorage.removeItem('newcomer.profile')")
    send.click()
    expect(failure).to_contain_text("The server of this page does not respond.")
    expect(failure).to_contain_text("Your key and your text are still here.")
    assert all_rows() == before


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/plain", '{"controller": "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf"}'),
        ("application/json", '{"controller": "0x7E5F4552091A69125d5DfCb7b8C2659029395BdF"}'),
        ("application/json", '{"controller": null}'),
        ("application/json", "[]"),
        ("application/json", "{"),
    ],
)
def test_pages_of_other_sites_and_mistakes_create_nothing(demo: Demo, kind: str, body: str) -> None:
    make_policy(demo.sponsor, purpose=Purpose.PROFILES)
    before = all_rows()
    response = urllib3.request("POST", f"{demo.url}/profile", body=body, headers={"Content-Type": kind})
    assert (response.status, response.json()["code"]) == (400, "invalid-request")
    assert urllib3.request("GET", f"{demo.url}/server.py").status == 404
    assert all_rows() == before
