"""An account holder at a browser window: a profile on a chain in memory, a Stripe in memory, tokens in the tab."""

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings as django_settings
from playwright.sync_api import Browser, Locator, Page, Request, Route, ViewportSize, expect
from pytest_django.live_server_helper import LiveServer

from devstack.extension import extension_script
from gateway.chain.client import set_chain_client
from payments.stripe import set_billing_client
from tests.browser.admin_client import Scheme
from tests.browser.chromium import PATIENCE_MILLISECONDS
from tests.fakes.billing import FakeBilling
from tests.fakes.chain import FakeChain
from tests.fakes.profiles import Profile
from tests.payments.stripe_accounts import VISA
from tests.users.auth_client import signed_in
from tests.users.trusted import trust_code
from users.models import User

DESKTOP, PHONE = ViewportSize(width=1280, height=850), ViewportSize(width=390, height=844)
_INSTALL = """
window.signatures = 0;
window.extension = installExtension({{
  profiles: [{profile}], privateKey: {key}, node: {{ request: (request) => window.askNode(request) }},
  approves: ({{ method, params }}) => {{
    if (method === "personal_sign") window.signatures += 1;
    if ((params[0]?.chainIds ?? []).some((id) => (window.declinedChains ?? []).includes(id))) return false;
    return !(window.declined ?? []).includes(method);
  }},
}});
"""
_KEEP = """
if (!sessionStorage.getItem("was-here")) {{
  sessionStorage.setItem("was-here", "1");
  sessionStorage.setItem("credit-relay.profile", {profile});
  sessionStorage.setItem({name}, {tokens});
}}
"""


@dataclass
class Holder:
    """A profile that has signed in, and what it is at Stripe."""

    profile: Profile
    billing: FakeBilling
    chain: FakeChain
    base_url: str
    # Whether cards are entered on Stripe's page; otherwise the way back is taken without one.
    enters_cards: bool = True
    card: str = VISA
    complaints: list[str] = field(default_factory=list)

    @property
    def user(self) -> User:
        """The row of the user, made by the first sign-in."""
        return User.objects.get(profile_address=self.profile.profile_address)

    def signs_in(self, page: Page) -> None:
        """Put tokens of a session into the tab, as an earlier visit has left them."""
        tokens = signed_in(self.profile)
        kept = {
            "access": tokens.access,
            "refresh": tokens.refresh,
            "expiresAt": time.time() + 600,
        }
        address = self.profile.profile_address
        page.add_init_script(
            _KEEP.format(
                profile=json.dumps(address),
                name=json.dumps(f"credit-relay {self.base_url} {address.lower()}"),
                tokens=json.dumps(json.dumps(kept)),
            )
        )

    def installs_extension(self, page: Page, *, address: str = "") -> None:
        """Put an extension with the profile's key into the page; `address` is that of another account."""
        page.expose_function("askNode", self._as_node)
        page.add_init_script(
            extension_script()
            + _INSTALL.format(
                profile=json.dumps(address or self.profile.profile_address),
                key=json.dumps(self.profile.controller.private_key),
            )
        )

    def _as_node(self, request: dict[str, Any]) -> str:
        """Return what the extension asks its node: the chain, the owner of the profile, the next relay nonce."""
        if request["method"] == "eth_chainId":
            return hex(django_settings.CHAIN_ID)
        if request["params"][0]["to"].lower() == self.profile.profile_address.lower():
            return f"0x{self.profile.key_manager_address[2:].lower():0>64}"
        nonce = self.chain.read_relay_nonce(
            key_manager=self.profile.key_manager_address,
            controller=self.profile.controller.address,
            channel=0,
        )
        return f"0x{nonce or 0:064x}"


@contextmanager
def holding(live_server: LiveServer, settings: Any) -> Iterator[Holder]:
    """Yield an account holder; the service asks a chain and a Stripe in memory meanwhile."""
    settings.AUTH_DOMAIN, settings.PUBLIC_URL = urlsplit(live_server.url).netloc, live_server.url
    settings.STRIPE_SECRET_KEY = f"sk_test_{secrets.token_hex(12)}"
    settings.STRIPE_WEBHOOK_SECRETS = [f"whsec_{secrets.token_hex(12)}"]
    chain, billing = FakeChain(), FakeBilling(webhook_secrets=settings.STRIPE_WEBHOOK_SECRETS)
    set_chain_client(chain)
    set_billing_client(billing)
    trust_code(profile=chain.universal_profile, key_manager=chain.key_manager)
    yield Holder(chain.create_profile(), billing, chain, live_server.url)
    set_chain_client(None)
    set_billing_client(None)


@contextmanager
def window_of(
    browser: Browser,
    holder: Holder,
    *,
    size: ViewportSize = DESKTOP,
    locale: str = "en-US",
    scheme: Scheme = "light",
    has_touch: bool = False,
) -> Iterator[Page]:
    """Yield a window of the holder; at the end no script may have thrown, and no other host been asked."""
    context = browser.new_context(
        viewport=size, locale=locale, color_scheme=scheme, has_touch=has_touch, is_mobile=has_touch
    )
    context.set_default_timeout(PATIENCE_MILLISECONDS)
    page = context.new_page()
    page.on("pageerror", lambda error: holder.complaints.append(f"exception: {error}"))
    page.on("request", lambda request: _complain_of_foreign(request, holder))
    context.route("https://checkout.example/**", lambda route: card_entered(route, holder))
    yield page
    context.close()
    assert holder.complaints == []


def _complain_of_foreign(request: Request, holder: Holder) -> None:
    own = (holder.base_url, "https://checkout.example/", "data:", "blob:")
    if not request.url.startswith(own):
        holder.complaints.append(f"foreign request: {request.url}")


def card_entered(route: Route, holder: Holder) -> None:
    """Respond as Stripe's page of cards would once a card is entered: with the way back."""
    customer = urlsplit(route.request.url).path.split("/")[1]
    if holder.enters_cards:
        holder.billing.capture(customer, holder.card)
    route.fulfill(status=303, headers={"location": f"{holder.base_url}/account#plan"})


def section(page: Page, name: str) -> None:
    """Open a section of the page, and wait until it is whole."""
    page.get_by_role("navigation", name="My account").get_by_role("link", name=name, exact=True).click()
    whole(page)


def subscribe(page: Page) -> None:
    """Order the plan that the form describes, and confirm its total."""
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("dialog").get_by_role("button", name="Subscribe and pay").click()


def whole(page: Page) -> None:
    """Wait until nothing of the section is loading."""
    expect(page.locator("#content")).to_have_attribute("aria-busy", "false")


def toast(page: Page) -> Locator:
    """Return the place that shows the outcome of an action."""
    return page.get_by_role("status")


def fault(page: Page) -> Locator:
    """Return what is said beside the control whose action failed."""
    return page.locator(".fault")


@dataclass
class Shop:
    """Packs as the service sells them: the first purchase meets no card. `keys` are those of the requests."""

    keys: list[str] = field(default_factory=list)
    consent: str = ""

    def packs(self, route: Route) -> None:
        """Respond to GET /api/payments/packs."""
        pack = {"pack": "usd-10", "currency": "usd", "cost": 1000, "amount": "$10.00", "credits": 10_500}
        terms = {"currency": "usd", "minimum": 50, "maximum": 1_000_000, "creditsPerMajorUnit": 1000}
        route.fulfill(
            json={
                "packs": [{**pack, "bonusCredits": 500}],
                "currencies": [terms],
                "ownCurrency": None,
                "undoMinutes": 60,
            }
        )

    def purchase(self, route: Route) -> None:
        """Respond to POST /api/payments/purchaseCredits."""
        self.keys.append(route.request.headers["idempotency-key"])
        if len(self.keys) == 1:
            problem = {"code": "payment-method-required", "status": 402, "title": "", "detail": "No card."}
            route.fulfill(status=402, json={"type": "/problems/payment-method-required", **problem})
        else:
            paid = {
                "purchaseId": "1",
                "status": "paid",
                "pack": "usd-10",
                "createdAt": 1,
                "undoUntil": None,
                "undo": "",
            }
            route.fulfill(json={**paid, "cost": 1000, "currency": "usd", "credits": 10_500})

    def top_up(self, route: Route) -> None:
        """Respond to GET and PUT /api/payments/topUp."""
        if route.request.method == "PUT":
            self.consent = (route.request.post_data_json or {})["consent"]
        state = {"pack": "usd-10", "cost": 1000, "currency": "usd", "spentThisMonth": 0, "pausedReason": ""}
        on = {
            "status": "on",
            "threshold": 3000,
            "monthlyLimit": 5000,
            "consentedAt": 1,
            "consent": self.consent,
        }
        off = {"status": "off", "threshold": 0, "monthlyLimit": 0, "consentedAt": None, "consent": ""}
        route.fulfill(
            json={**state, **(on if self.consent else off), "declineCode": "", "lastPurchaseAt": None}
        )
