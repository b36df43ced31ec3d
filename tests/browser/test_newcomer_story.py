"""A newcomer without credits makes the first call on the account page, through a wallet that knows no sponsors."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.utils.timezone import now
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from credits.models import CreditEntry
from gateway.chain.signing import get_signer
from relay.services.fleet import relayers
from sponsors.models import ProfileRule, Sponsor, SponsoredCall
from sponsors.services import policies
from tests.browser.accessibility import violations
from tests.browser.account_page import PHONE, Holder, fault, holding, toast, whole, window_of
from tests.browser.words import Words
from tests.factories import random_address
from tests.relay.workers import broadcast_all, track
from tests.sponsors.sponsorships import make_policy, make_sponsor

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def holder(live_server: LiveServer, settings: Any) -> Iterator[Holder]:
    """A profile with coins and no account, before a relay whose relayers are funded."""
    with holding(live_server, settings) as one:
        one.chain.fund(10**18, one.profile.profile_address)
        one.chain.fund(100 * 10**18, *get_signer().addresses())
        relayers.sync(now=now())
        yield one


@pytest.fixture
def sponsor(live_server: LiveServer) -> Sponsor:
    """The operator's default sponsor, which pays for one call of each new profile."""
    sponsor = make_sponsor()
    make_policy(sponsor, profiles=ProfileRule.NEW, new_since=now(), user_calls=1)
    policies.make_default(sponsor, is_default=True)
    return sponsor


def test_a_newcomer_without_credits_makes_a_first_call_and_sees_its_payer(
    browser: Browser, holder: Holder, sponsor: Sponsor
) -> None:
    words = Words("de")
    with window_of(browser, holder, size=PHONE, locale="de") as page:
        holder.installs_extension(page)
        page.goto(f"{holder.base_url}/account")
        page.get_by_role("button", name=words("Sign in with {wallet}", wallet="Universal Profiles")).click()
        whole(page)
        expect(page.locator(".figure")).to_have_text("0 Credits")
        page.get_by_role("button", name=words("Add to my wallet")).click()
        page.get_by_text(words("Try it: send {currency}", currency="LYX")).click()

        _send(page, words)
        expect(page.get_by_text(words("Sent; waiting for the chain:"))).to_be_visible()
        assert broadcast_all() == 1
        holder.chain.mine(5)
        assert track() == 1

        expect(toast(page).last).to_contain_text(sponsor.slug)
        assert violations(page) == []
        # The policy is used up, so the page tells what the account lacks.
        page.get_by_text(words("Try it: send {currency}", currency="LYX")).click()
        _send(page, words)
        expect(fault(page)).to_contain_text(words("You do not have enough credits for this."))
        page.goto(f"{holder.base_url}/account#activity")
        paid_by = words("paid by {sponsor}", sponsor=sponsor.slug)
        expect(page.locator(".timeline li")).to_contain_text(paid_by)
        assert violations(page) == []
    paid = SponsoredCall.objects.select_related("hold", "sponsor_hold").get()
    assert (paid.user, paid.hold.amount) == (holder.user, 0)
    assert paid.sponsor_hold.captured_amount
    assert not CreditEntry.objects.filter(account__user=holder.user).exists()


def _send(page: Page, words: Words) -> None:
    page.get_by_label(words("To address")).fill(random_address())
    page.get_by_label(words("Amount in {currency}", currency="LYX")).fill("0,1")
    page.get_by_role("button", name=words("Send with my wallet")).click()
