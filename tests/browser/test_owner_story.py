"""
The owner's story, from the first visit to a deleted account.

The owner begins on a desktop in English with the light scheme, and continues on a phone in German with the dark one.
"""

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils.timezone import now
from playwright.sync_api import Browser, Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from checkin.services import seeds
from credits.models import CreditEntry, EntrySource
from credits.queries import balance_of
from earnings.models import AdNetwork
from earnings.queries import arriving
from earnings.services import earnings
from gateway.chain.signing import get_signer
from payments.models import CreditPack, PayoutRate
from relay.models import RelayTransaction
from relay.services.fleet import relayers
from tests.browser.accessibility import violations
from tests.browser.account_page import DESKTOP, PHONE, Holder, holding, toast, whole, window_of
from tests.browser.words import Words
from tests.earnings.ad_networks import set_up
from tests.factories import random_address
from tests.payments.buying import new_pack
from tests.payments.webhook_events import process_events
from tests.relay.workers import broadcast_all, track
from users.models import AccountDeletion, Note

pytestmark = pytest.mark.django_db(transaction=True)
_PRICE, _BONUS, _RATE = 1_000, 500, 1_000
_BOUGHT = _PRICE // 100 * _RATE + _BONUS
_EVERYTHING = {
    "account",
    "adNetworks",
    "arriving",
    "card",
    "checkIns",
    "dashboard",
    "earnings",
    "invoices",
    "noticeEmail",
    "receiptEmail",
    "sessions",
    "staffNotes",
    "subscription",
    "timeline",
    "topUp",
    "transactions",
}


@dataclass
class Visit:
    """A window of the owner, and the words that are read in it."""

    page: Page
    holder: Holder
    words: Words
    width: int
    pictures: Path | None

    def looks(self, name: str) -> None:
        """See that everybody can use the screen, that it fits, and keep a picture where pictures are wanted."""
        assert violations(self.page) == []
        assert self.page.evaluate("document.documentElement.scrollWidth") <= self.width
        if self.pictures:
            path = self.pictures / f"account-{name}.png"
            self.page.screenshot(path=path, full_page=True, animations="disabled")

    def takes_the_phone(self) -> None:
        self.page.set_viewport_size(PHONE)
        self.page.emulate_media(color_scheme="dark")
        self.page.get_by_role("link", name="Deutsch").click()
        self.words, self.width = Words("de"), PHONE["width"]
        expect(self.page.locator("html")).to_have_attribute("lang", "de")
        whole(self.page)

    def section(self, name: str) -> None:
        menu = self.page.get_by_role("navigation", name=self.words("My account"))
        menu.get_by_role("link", name=self.words(name), exact=True).click()
        whole(self.page)

    def button(self, text: str, **values: object) -> Locator:
        return self.page.get_by_role("button", name=self.words(text, **values), exact=True)

    def reads(self, text: str, **values: object) -> None:
        expect(self.page.get_by_text(self.words(text, **values)).first).to_be_visible()

    def reload(self) -> None:
        self.page.reload()
        whole(self.page)


@pytest.fixture
def holder(live_server: LiveServer, settings: Any) -> Iterator[Holder]:
    """An owner whose profile has coins, before a relay, a shop and daily draws."""
    settings.EXPLORER_URL, settings.EMAIL_HOST = "https://explorer.example", "mail.example"
    PayoutRate.objects.get_or_create(
        currency="usd",
        valid_from=datetime(2020, 1, 1, tzinfo=UTC),
        defaults={"credits_per_major_unit": _RATE},
    )
    CreditPack.objects.all().delete()
    new_pack(amount=_PRICE, bonus=_BONUS)
    seeds.commit_and_reveal(now=now())
    with holding(live_server, settings) as one:
        one.chain.fund(10**18, one.profile.profile_address)
        one.chain.fund(100 * 10**18, *get_signer().addresses())
        relayers.sync(now=now())
        yield one


def test_an_owner_signs_in_buys_relays_checks_in_subscribes_earns_and_leaves(
    browser: Browser, holder: Holder, pictures: Path | None
) -> None:
    with window_of(browser, holder) as page:
        visit = Visit(page, holder, Words("en"), DESKTOP["width"], pictures)
        holder.installs_extension(page)
        _arrives(visit)
        _buys_a_pack(visit)
        _relays_a_call(visit)
        _checks_in(visit)
        visit.takes_the_phone()
        _subscribes_cancels_and_resumes(visit)
        _earns(visit)
        _takes_everything_along(visit)
        _leaves(visit)


def _arrives(visit: Visit) -> None:
    page = visit.page
    page.goto(visit.holder.base_url)
    visit.looks("1-landing")
    page.get_by_role("link", name=visit.words("Open my account")).first.click()
    expect(visit.button("Sign in with {wallet}", wallet="Universal Profiles")).to_be_visible()
    visit.looks("2-sign-in")
    visit.button("Sign in with {wallet}", wallet="Universal Profiles").click()
    visit.reads("You have no credits yet. Buy a pack, subscribe, or earn some.")
    whole(page)
    visit.looks("3-no-credits")


def _buys_a_pack(visit: Visit) -> None:
    """The way out of having none: the card is entered at Stripe, and the purchase continues by itself."""
    page, words = visit.page, visit.words
    page.get_by_role("link", name=words("Buy credits")).click()
    whole(page)
    expect(page.locator("#packs")).to_be_focused()
    visit.looks("4-packs")
    assert not CreditEntry.objects.exists()
    visit.button("Buy for {price}", price=words.dollars(_PRICE)).click()
    visit.button("Pay {price}", price=words.dollars(_PRICE)).click()
    expect(page.locator("#content .notice")).to_contain_text(words.dollars(_PRICE))
    expect(page.locator("#content .notice")).to_contain_text(words.number(_BOUGHT))
    whole(page)
    visit.looks("5-bought")
    [entry] = CreditEntry.objects.all()
    assert (entry.source, entry.amount) == (EntrySource.CREDIT_PURCHASE, _BOUGHT)


def _relays_a_call(visit: Visit) -> None:
    page, words, to = visit.page, visit.words, random_address()
    visit.section("Home")
    expect(page.locator(".figure")).to_contain_text(words.number(_BOUGHT))
    visit.button("Add to my wallet").click()
    expect(toast(page).last).to_be_in_viewport()
    page.get_by_text(words("Try it: send {currency}", currency="LYX")).click()
    page.get_by_label(words("To address")).fill(to)
    page.get_by_label(words("Amount in {currency}", currency="LYX")).fill("0,5")
    visit.button("Send with my wallet").click()
    visit.reads("Sent; waiting for the chain:")
    visit.looks("6-sent")
    assert broadcast_all() == 1
    visit.holder.chain.mine(5)
    assert track() == 1
    call = RelayTransaction.objects.get()
    expect(toast(page).last.get_by_role("link")).to_have_attribute(
        "href", f"https://explorer.example/tx/{call.transaction_hash}"
    )
    # The badge gives a little of the price back.
    left = balance_of(visit.holder.user).available
    assert 0 < _BOUGHT - left <= call.real_cost
    expect(page.locator(".figure")).to_contain_text(words.number(left))

    visit.section("Activity")
    amount = "0.5 LYX" if words.language == "en" else "0,5 LYX"
    title = words("Sent {amount} to {to}", amount=amount, to=f"{to[:6]}…{to[-4:]}")
    row = page.locator(".timeline li").filter(has_text=title)
    expect(row).to_contain_text(f"-{words.number(call.real_cost)}")
    expect(row).to_contain_text(words("done"))
    expect(row.get_by_role("link")).to_have_attribute(
        "href", f"https://explorer.example/tx/{call.transaction_hash}"
    )
    purchase = page.locator(".timeline li").filter(has_text=words("Credits bought"))
    expect(purchase).to_contain_text(words.dollars(_PRICE))
    visit.looks("7-activity")


def _checks_in(visit: Visit) -> None:
    """The commitment is noted in the browser before the draw; days later the draw is recomputed from its seed."""
    page = visit.page
    visit.section("Home")
    page.get_by_text(visit.words("What you can win, and how likely")).click()
    visit.looks("8-before-check-in")
    visit.button("Check in").click()
    visit.reads("You won")
    expect(page.get_by_role("link", name=visit.words("Check in"))).to_have_count(0)
    visit.looks("9-won")
    # What was won is everywhere on the screen, before it is loaded again.
    shown = _badges(page)
    seeds.commit_and_reveal(now=now() + timedelta(days=3))
    visit.reload()
    assert _badges(page) == shown
    page.get_by_text(visit.words("Proof that draws are fair")).click()
    visit.button("Verify my draws").click()
    proof = page.get_by_role("table", name=visit.words("Your verified draws"))
    expect(proof).to_contain_text(visit.words("same result"))
    expect(proof).to_contain_text(visit.words("yes, stored by this browser"))
    visit.looks("10-proof")


def _badges(page: Page) -> tuple[list[str], int]:
    """Return what is missing to the next badges, and the number of bonuses."""
    missing: list[str] = page.locator("#badges progress").evaluate_all("all => all.map(one => one.ariaLabel)")
    return missing, page.locator("#badges ul:not(.benefits) li").count()


def _subscribes_cancels_and_resumes(visit: Visit) -> None:
    page, words = visit.page, visit.words
    price = words.dollars(2_550)
    visit.section("Plan")
    page.get_by_label(words("Amount per month")).fill("25,50")
    visit.looks("11-plan-offer")
    visit.button("Continue").click()
    visit.button("Subscribe and pay").click()
    expect(page.get_by_role("heading", name=words("Your plan: {price} a month", price=price))).to_be_visible()
    expect(page.locator("dd", has_text="Visa")).to_contain_text("4242")
    process_events(visit.holder.billing.events, now=visit.holder.billing.now())
    visit.reload()
    expect(page.locator("dl", has_text=words("This period"))).to_contain_text(words.number(25_500))
    visit.looks("12-plan")
    visit.button("Cancel the plan").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(words("You keep"))
    expect(dialog).to_contain_text(
        words("the monthly credits, and the subscriber badge with its cashback and bonuses.")
    )
    visit.looks("13-cancel")
    dialog.get_by_role("button", name=words("Cancel at the end of the period")).click()
    resume = visit.button("Resume at {price}", price=price)
    expect(resume).to_be_visible()
    whole(page)
    visit.looks("14-cancelled")
    resume.click()
    expect(visit.button("Cancel the plan")).to_be_visible()
    whole(page)
    visit.looks("15-resumed")


def _earns(visit: Visit) -> None:
    """An earning that its network holds is announced, and arrives."""
    page, words, user = visit.page, visit.words, visit.holder.user
    network = set_up("cpx-research")
    AdNetwork.objects.update(hold_hours=20)
    network.send(network.reward(user, amount="311"))
    # With the bonus of the badge, and maybe of the check-in.
    held = words.number(arriving(user_id=user.pk).credits)
    before = CreditEntry.objects.count()
    visit.section("Home")
    visit.reload()
    expect(page.locator(".facts li", has_text="CPX Research")).to_contain_text(held)
    visit.looks("16-arriving")
    visit.section("Earn")
    expect(page.get_by_role("table", name=words("Earnings on their way"))).to_contain_text(
        words("held by the network")
    )
    visit.looks("17-earn")
    assert CreditEntry.objects.count() == before
    assert earnings.release_due(now=now() + timedelta(hours=21)) == 1
    visit.section("Activity")
    row = page.locator(".timeline li").filter(has_text="CPX Research")
    expect(row).to_contain_text(f"+{held}")
    visit.section("Home")
    expect(page.locator(".facts li", has_text="CPX Research")).to_have_count(0)


def _takes_everything_along(visit: Visit) -> None:
    page, user = visit.page, visit.holder.user
    note = secrets.token_hex(8)
    Note.objects.create(person=user, author=user, text=note)
    visit.section("Data")
    visit.looks("18-data")
    with page.expect_download() as download:
        visit.button("Download everything").click()
    data = json.loads(download.value.path().read_text())
    assert {name for name, content in data.items() if content} >= _EVERYTHING
    assert "sponsors" in data
    assert data["card"]["card"]["last4"] == "4242"
    assert data["staffNotes"]["notes"][0]["text"] == note
    assert {row["total"] for row in data["invoices"]} == {_PRICE, 2_550}
    kinds = {row["kind"] for row in data["timeline"]}
    assert kinds == {"call", "entry", "check-in"}
    assert data["transactions"][0]["transaction_hash"] == RelayTransaction.objects.get().transaction_hash


def _leaves(visit: Visit) -> None:
    page, words = visit.page, visit.words
    visit.button("Delete my account").click()
    visit.reads("Tick the box first: this cannot be undone.")
    page.get_by_label(words("I want to delete my account permanently.")).check()
    expect(page.get_by_text(words("Tick the box first: this cannot be undone."))).to_have_count(0)
    visit.looks("19-delete")
    visit.button("Delete my account").click()
    visit.reads(
        "Your account is closed and its data is being erased. You can create a new account with this profile in about "
        "an hour."
    )
    expect(page.locator("#sections")).to_be_hidden()
    assert page.evaluate("sessionStorage.length") == 0
    assert AccountDeletion.objects.count() == 1
    visit.looks("20-deleted")
