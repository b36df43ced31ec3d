"""The account holder's page in a browser, on one served chain and Stripe in memory: what has gone wrong for people."""

import re
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils.timezone import now
from playwright.sync_api import Browser, Route, expect
from pytest_django.live_server_helper import LiveServer

from checkin.services import checkins, seeds
from credits.models import EntrySource, ExpiringLot, ExpiryRule
from credits.services import entries
from earnings.models import AdNetwork
from gateway.chain.signing import get_signer
from payments.models import PayoutRate, Refund
from relay.models import RelayTransaction
from relay.services.fleet import relayers
from rewards.models import Badge
from rewards.services import levels
from tests.browser.accessibility import violations
from tests.browser.account_page import (
    PHONE,
    Holder,
    Shop,
    fault,
    holding,
    section,
    subscribe,
    toast,
    whole,
    window_of,
)
from tests.earnings.ad_networks import set_up
from tests.factories import AttemptFactory, random_address
from tests.fakes.profiles import transfer
from tests.payments.buying import buy, new_pack
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DECLINES
from tests.portal.history_rows import relayed
from tests.rewards.rows import set_experience
from tests.users.auth_client import signed_in
from users.models import SignInSession
from users.tokens import hash_of
from webhooks.models import NoticeAddress

pytestmark = pytest.mark.django_db(transaction=True)
ACCOUNT = "/account"


@pytest.fixture
def holder(live_server: LiveServer, settings: Any) -> Iterator[Holder]:
    with holding(live_server, settings) as one:
        yield one


def test_signing_in_moves_the_focus_alone_and_signing_out_leaves_nothing(
    browser: Browser, holder: Holder
) -> None:
    with window_of(browser, holder) as page:
        holder.installs_extension(page)
        page.goto(holder.base_url + ACCOUNT)
        expect(page.locator("#main")).to_be_focused()
        # The page's head with the name of the service and the way out stays in the window.
        assert page.evaluate("scrollY") == 0
        page.get_by_role("button", name="Sign in with Universal Profiles").click()
        expect(page.get_by_role("button", name="Sign out")).to_be_in_viewport()
        expect(page.locator("#main")).to_be_focused()
        assert page.evaluate("window.signatures") == 1

        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("button", name="Sign in with Universal Profiles")).to_be_visible()
        # A rule of the style sheet once made hidden tabs visible.
        expect(page.locator("#sections")).to_be_hidden()
        assert page.evaluate("sessionStorage.length") == 0


def test_a_wallet_that_does_not_use_the_service_is_offered_it_where_sending_fails(
    browser: Browser, holder: Holder
) -> None:
    key = secrets.token_hex(8)
    with window_of(browser, holder) as page:
        holder.installs_extension(page)
        holder.signs_in(page)
        entries.grant(user=holder.user, credits=50_000, source=EntrySource.SURVEYS, key=key)
        holder.chain.fund(100 * 10**18, *get_signer().addresses())
        relayers.sync(now=now())
        page.goto(holder.base_url + ACCOUNT)
        page.get_by_text("Try it: send LYX").click()
        page.get_by_label("To address").fill(random_address())
        page.get_by_role("button", name="Send with my wallet").click()

        expect(toast(page)).to_contain_text("Your wallet does not send through this service yet.")
        assert not RelayTransaction.objects.exists()
        toast(page).get_by_role("button", name="Add to my wallet").click()
        expect(toast(page)).to_contain_text("Your wallet now uses this service for 1 profile on")


def test_one_other_session_is_ended_from_the_page(browser: Browser, holder: Holder) -> None:
    with window_of(browser, holder) as page:
        other = signed_in(holder.profile)
        holder.installs_extension(page)
        holder.signs_in(page)
        page.goto(f"{holder.base_url}{ACCOUNT}#data")
        expect(page.get_by_text("You lose", exact=True)).to_be_visible()

        page.get_by_role("button", name="Sign out there").click()

        expect(page.get_by_role("button", name="Sign out there")).to_have_count(0)
        expect(page.get_by_text("this browser")).to_be_visible()
    ended = SignInSession.objects.exclude(revoked_at=None).get()
    assert ended.refresh_tokens.filter(token_hash=hash_of(other.refresh)).exists()


def test_the_page_reports_a_session_that_ended_elsewhere_before_it_requests_a_signature(
    browser: Browser, holder: Holder
) -> None:
    with window_of(browser, holder) as page:
        holder.installs_extension(page)
        holder.signs_in(page)
        page.goto(holder.base_url + ACCOUNT)
        whole(page)
        SignInSession.objects.update(revoked_at=now(), revoked_reason=SignInSession.Reason.SIGNED_OUT)

        page.get_by_role("link", name="Plan", exact=True).click()

        expect(page.get_by_text("Your session has ended, here or on another device.")).to_be_visible()
        assert page.evaluate("window.signatures") == 0


def test_a_wallet_without_a_profile_and_a_phone_without_a_wallet_see_how_to_continue(
    browser: Browser, holder: Holder
) -> None:
    with window_of(browser, holder) as page:
        holder.installs_extension(page, address=random_address())
        page.goto(holder.base_url + ACCOUNT)
        page.get_by_role("button", name="Sign in with Universal Profiles").click()
        expect(fault(page)).to_contain_text("This wallet holds no Universal Profile")
        expect(fault(page)).to_be_in_viewport()
    with window_of(browser, holder, size=PHONE, has_touch=True) as page:
        page.goto(holder.base_url + ACCOUNT)
        expect(page.get_by_text("phone browsers cannot install")).to_be_visible()
        expect(page.get_by_role("link", name="Get the extension")).to_have_count(0)
        assert violations(page) == []


def test_a_computer_without_a_wallet_is_shown_a_code_for_the_phone_that_has_one(
    browser: Browser, holder: Holder
) -> None:
    with window_of(browser, holder) as page:
        page.goto(holder.base_url + ACCOUNT)
        expect(page.get_by_role("link", name="Get the extension")).to_be_visible()
        code = page.get_by_role("img", name="QR code with the address of this page")
        expect(code).to_be_visible()
        assert code.evaluate("async image => (await image.decode(), image.naturalWidth)") > 100
        assert violations(page) == []


def test_the_page_warns_of_low_credits_and_lists_the_ways_to_get_more(
    browser: Browser, holder: Holder
) -> None:
    with window_of(browser, holder, size=PHONE) as page:
        holder.installs_extension(page)
        holder.signs_in(page)
        user = holder.user
        seeds.commit_and_reveal(now=now())
        entries.grant(user=user, credits=35, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
        page.goto(holder.base_url + ACCOUNT)
        whole(page)
        notice = page.locator(".hero-panel .notice")
        expect(notice).to_have_count(0)
        relayed(user, 10)
        for taken, line, is_urgent in (
            (0, "At 10 a day they last about 2 days.", False),
            (20, "At 10 a day they will be used up before tomorrow.", False),
            (5, "Your credits are used up.", True),
        ):
            if taken:
                key = secrets.token_hex(8)
                entries.adjust(user=user, credits=-taken, key=key, actor=None, reason="counted twice")
            page.reload()
            expect(notice).to_contain_text(line)
            assert ("bad" in str(notice.get_attribute("class"))) is is_urgent
        ways = page.locator(".hero-panel .actions")
        expect(ways.get_by_role("link")).to_have_text(
            ["Buy credits", "Subscribe", "Earn credits", "Check in"]
        )
        ways.get_by_role("link", name="Check in").click()
        expect(page.locator("#check-in")).to_be_in_viewport()
        assert violations(page) == []


def test_credits_that_expire_soon_are_announced(browser: Browser, holder: Holder) -> None:
    with window_of(browser, holder) as page:
        holder.installs_extension(page)
        holder.signs_in(page)
        given = entries.grant(
            user=holder.user, credits=30, source=EntrySource.SURVEYS, key=secrets.token_hex(8)
        )
        ExpiryRule.objects.create(valid_from=now() - timedelta(days=1), days=30)
        ExpiringLot.objects.create(entry=given, credits=30, expires_at=datetime(2100, 2, 3, 12, tzinfo=UTC))
        page.goto(holder.base_url + ACCOUNT)
        line = "Expiring on February 3, 2100: 30 credits. Transactions use them first."
        expect(page.get_by_text(line)).to_be_visible()


def test_a_success_message_lasts_ten_seconds_and_a_failure_stays_until_it_is_closed(
    browser: Browser, holder: Holder, settings: Any
) -> None:
    settings.EMAIL_HOST = "mail.example"
    with window_of(browser, holder) as page:
        page.clock.install()
        holder.installs_extension(page)
        holder.signs_in(page)
        page.goto(f"{holder.base_url}{ACCOUNT}#data")
        whole(page)
        page.get_by_label("E-mail address (optional)").fill("ada@example.org")
        save = page.get_by_role("button", name="Save the address")
        save.click()
        told = toast(page).get_by_text("Open the link that we have sent to this address.")
        told.hover()
        page.clock.fast_forward(10_000)
        expect(told).to_be_visible()
        page.mouse.move(0, 0)
        page.clock.fast_forward(10_000)
        expect(told).to_have_count(0)

        problem = {"type": "about:blank", "code": "not-today", "status": 409, "detail": "Not today."}
        page.route("**/api/user/noticeEmail", lambda route: route.fulfill(status=409, json=problem))
        save.click()
        failed = fault(page).get_by_text("Not today.")
        expect(failed).to_be_visible()
        page.clock.fast_forward(60_000)
        expect(failed).to_be_visible()
        failed.locator("..").get_by_role("button", name="Close").click()
        expect(failed).to_have_count(0)


def test_an_address_for_e_mails_is_given_confirmed_and_taken_back(
    browser: Browser, holder: Holder, settings: Any
) -> None:
    settings.EMAIL_HOST = "mail.example"
    with window_of(browser, holder, size=PHONE) as page:
        holder.installs_extension(page)
        holder.signs_in(page)
        page.goto(f"{holder.base_url}{ACCOUNT}#data")
        address = page.get_by_label("E-mail address (optional)")
        save = page.get_by_role("button", name="Save the address")
        address.fill("not an address")
        save.click()
        expect(page.get_by_text("Enter an e-mail address, or nothing.")).to_be_visible()
        assert not NoticeAddress.objects.exists()

        address.fill("ada@example.org")
        save.click()
        expect(page.get_by_text("The address is not confirmed yet")).to_be_visible()
        expect(toast(page)).to_contain_text("Open the link that we have sent to this address.")
        assert violations(page) == []
        NoticeAddress.objects.update(confirmed_at=now())
        page.reload()
        expect(page.get_by_text("We write to ada@example.org.")).to_be_visible()
        expect(page.get_by_text("The address is not confirmed yet")).to_have_count(0)

        page.get_by_role("button", name="Stop the e-mails").click()
        expect(page.get_by_text("We write to ada@example.org.")).to_have_count(0)
        assert not NoticeAddress.objects.exists()


def test_a_plan_is_started_changed_cancelled_and_resumed_with_the_amount_that_it_has(
    browser: Browser, holder: Holder
) -> None:
    with window_of(browser, holder, size=PHONE) as page:
        holder.installs_extension(page)
        holder.signs_in(page)
        page.goto(f"{holder.base_url}{ACCOUNT}#plan")
        amount = page.get_by_label("Amount per month")
        for wrong in ("0", "0,00", "ten", "1.234.5"):
            amount.fill(wrong)
            page.get_by_role("button", name="Continue").click()
            expect(page.get_by_text("Enter an amount above 0")).to_be_visible()
        assert holder.billing.calls["create_card_page"] == 0

        # The mark of another country; the card is entered at Stripe, and what was wanted continues by itself.
        amount.fill("25,50")
        subscribe(page)
        expect(page.get_by_role("heading", name="Your plan: $25.50 a month")).to_be_visible()
        assert holder.billing.calls["create_subscription"] == 1

        page.get_by_text("Change the amount").click()
        expect(amount).to_have_value("25.50")
        amount.fill("40")
        page.get_by_role("button", name="Save the amount").click()
        expect(toast(page).last).to_contain_text("nothing was charged now")
        expect(toast(page).last).to_be_in_viewport()

        page.get_by_role("button", name="Cancel the plan").click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("You keep")
        expect(dialog).to_contain_text("the monthly credits")
        assert violations(page) == []
        dialog.get_by_role("button", name="Keep the plan").click()
        assert holder.billing.calls["cancel_subscription"] == 0
        page.get_by_role("button", name="Cancel the plan").click()
        dialog.get_by_role("button", name="Cancel at the end of the period").click()
        resume = page.get_by_role("button", name="Resume at $40.00")
        expect(resume).to_be_visible()
        page.get_by_text("Change the amount").click()
        expect(amount).to_have_value("40.00")
        assert violations(page) == []
        resume.click()
        expect(page.get_by_role("button", name="Cancel the plan")).to_be_visible()
        expect(page.get_by_role("heading", name="Your plan: $40.00 a month")).to_be_visible()


def test_a_declined_card_leaves_the_plan_in_its_place_and_names_the_next_step(
    browser: Browser, holder: Holder
) -> None:
    with window_of(browser, holder) as page:
        holder.installs_extension(page)
        holder.signs_in(page)
        holder.card = DECLINES
        page.goto(f"{holder.base_url}{ACCOUNT}#plan")
        subscribe(page)
        failed = page.get_by_role("alert").filter(has_text="Your bank declined the card")
        expect(failed.get_by_role("button", name="Replace the card")).to_be_visible()
        expect(page.get_by_role("heading", name="Your plan: $10.00 a month")).to_be_visible()
        expect(page.get_by_text("Buy credits once")).to_be_visible()
        expect(page.get_by_text("This could not be loaded")).to_have_count(0)
        assert violations(page) == []
        with page.expect_response("**/api/payments/cardPage"):
            failed.get_by_role("button", name="Replace the card").click()
        assert holder.billing.calls["create_card_page"] == 2


def test_what_stripe_does_not_tell_is_missing_alone_and_an_address_is_asked_for(
    browser: Browser, holder: Holder
) -> None:
    def away(route: Route) -> None:
        problem = {"code": "billing-unavailable", "status": 503, "title": "", "detail": "Stripe is away."}
        route.fulfill(status=503, json={"type": "/problems/billing-unavailable", **problem})

    def without_address(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, json=response.json() | {"nextStep": "complete-address"})

    with window_of(browser, holder) as page:
        holder.installs_extension(page)
        holder.signs_in(page)
        page.goto(f"{holder.base_url}{ACCOUNT}#plan")
        subscribe(page)
        expect(page.get_by_role("heading", name="Your plan: $10.00 a month")).to_be_visible()
        for name in ("invoices", "card", "receiptEmail", "packs"):
            page.route(f"**/api/payments/{name}*", away)
        page.route("**/api/payments/subscription", without_address)
        section(page, "Home")
        section(page, "Plan")
        expect(page.get_by_text("Tax depends on your address, which is missing.")).to_be_visible()
        expect(page.get_by_role("button", name="Enter card and address")).to_be_visible()
        expect(page.get_by_text("This cannot be read at Stripe at the moment.")).to_have_count(3)
        assert violations(page) == []


def test_leaving_checkout_without_a_card_charges_nothing_and_payment_from_balance_is_shown(
    browser: Browser, holder: Holder
) -> None:
    told = "Your balance at Stripe paid for this month, so it gives no credits."

    def from_balance(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, json=response.json() | {"latestInvoice": "balance"})

    with window_of(browser, holder) as page:
        holder.installs_extension(page)
        holder.signs_in(page)
        holder.enters_cards = False
        page.goto(f"{holder.base_url}{ACCOUNT}#plan")
        subscribe(page)
        expect(page.get_by_text("No card was saved at Stripe, so nothing was charged")).to_be_visible()
        assert (holder.billing.calls["create_card_page"], holder.billing.calls["create_subscription"]) == (
            1,
            0,
        )
        holder.enters_cards = True
        subscribe(page)
        expect(page.get_by_role("heading", name="Your plan: $10.00 a month")).to_be_visible()
        expect(page.get_by_text(told)).to_have_count(0)
        page.route("**/api/payments/subscription", from_balance)
        section(page, "Home")
        section(page, "Plan")
        expect(page.get_by_text(told)).to_be_visible()


def test_the_first_screen_shows_what_credits_buy_pending_rewards_and_won_rewards(
    browser: Browser, holder: Holder
) -> None:
    with window_of(browser, holder) as page:
        holder.installs_extension(page)
        holder.signs_in(page)
        user = holder.user
        seeds.commit_and_reveal(now=now())
        # Before the first earning a check-in gives experience only.
        checkins.execute(user=user, now=now() - timedelta(days=1))
        entries.grant(
            user=user,
            credits=1_000,
            source=EntrySource.SURVEYS,
            key=f"earning:bitlabs:{secrets.token_hex(4)}",
        )
        relayed(user, 10)
        RelayTransaction.objects.update(real_cost=90)
        network = set_up("cpx-research")
        AdNetwork.objects.update(hold_hours=20)
        network.send(network.reward(user, amount="11"))

        page.goto(holder.base_url + ACCOUNT)
        expect(page.get_by_text("990 credits")).to_be_visible()
        expect(page.get_by_text("About 11 transactions at today's price.")).to_be_visible()
        expect(page.get_by_text("from CPX Research, held by the network.")).to_be_visible()
        expect(page.get_by_text("1 day in a row")).to_be_visible()
        page.get_by_text("What you can win").click()
        expect(page.get_by_role("table", name="Chances of a check-in")).to_contain_text("%")
        page.get_by_role("button", name="Check in", exact=True).click()
        expect(page.get_by_text("You won")).to_be_visible()
        expect(page.get_by_text("2 days in a row")).to_be_visible()
        expect(page.get_by_text("The next check-in opens")).to_be_visible()
        expect(page.get_by_role("button", name="Checked in")).to_be_disabled()
        expect(page.get_by_text("You would have the badge")).to_be_visible()
        assert violations(page) == []


def test_the_timeline_describes_each_event_and_the_cause_of_a_failure(
    browser: Browser, holder: Holder
) -> None:
    with window_of(browser, holder, size=PHONE) as page:
        holder.installs_extension(page)
        holder.signs_in(page)
        user, to = holder.user, random_address()
        entries.grant(
            user=user, credits=500, source=EntrySource.OFFERWALL, key=f"earning:tapjoy:{secrets.token_hex(4)}"
        )
        relayed(user, 2)
        ids = list(RelayTransaction.objects.order_by("id").values_list("pk", flat=True))
        RelayTransaction.objects.filter(pk=ids[0]).update(payload=transfer(to, 5 * 10**17))
        RelayTransaction.objects.filter(pk=ids[1]).update(status="Failed", failure_code="target-reverted")

        page.goto(f"{holder.base_url}{ACCOUNT}#activity")
        rows = page.locator(".timeline li")
        expect(rows.filter(has_text=f"Sent 0.5 LYX to {to[:6]}…{to[-4:]}")).to_contain_text("-1")
        expect(rows.filter(has_text="failed")).to_contain_text("The contract that you called refused it.")
        expect(rows.filter(has_text="Offers: Tapjoy")).to_contain_text("+500")

        page.get_by_label("Show").select_option("Transactions")
        expect(rows).to_have_count(2)
        page.get_by_label("Show").select_option("Check-ins")
        expect(page.get_by_text("Nothing of this kind yet.")).to_be_visible()
        wanted = AttemptFactory.create(relay_transaction_id=ids[0]).transaction_hash
        find, hash_of_call = page.get_by_role("button", name="Find"), page.get_by_label("Transaction hash")
        hash_of_call.fill("0x12345")
        find.click()
        expect(page.get_by_text("Enter a transaction hash, or its beginning")).to_be_visible()
        hash_of_call.fill(f" {wanted[:10]}…{wanted[-4:]} ")
        find.click()
        expect(rows).to_have_count(1)
        expect(rows).to_contain_text("Sent 0.5 LYX")
        hash_of_call.fill(f"0x{secrets.token_hex(32)}")
        find.click()
        expect(page.get_by_text("No transaction of yours has this hash.")).to_be_visible()
        hash_of_call.fill("")
        find.click()
        expect(rows).to_have_count(3)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert violations(page) == []


def test_a_purchase_is_undone_on_the_page_after_a_confirmation(browser: Browser, holder: Holder) -> None:
    with window_of(browser, holder, size=PHONE, scheme="dark") as page:
        holder.signs_in(page)
        PayoutRate.objects.create(
            currency="usd", credits_per_major_unit=1_000, valid_from=now() - timedelta(days=1)
        )
        buy(Payer(holder.billing, holder.user).with_card(), new_pack(amount=500, bonus=0))
        page.goto(f"{holder.base_url}{ACCOUNT}#plan")
        undo = page.get_by_role("button", name="Undo until")
        undo.click()
        sheet = page.get_by_role("dialog")
        expect(sheet).to_contain_text("$5.00 goes back to your card, and 5,000 credits leave your account.")
        assert violations(page) == []
        sheet.get_by_role("button", name="Keep the credits").click()
        assert not Refund.objects.exists()

        undo.click()
        sheet.get_by_role("button", name="Undo the purchase").click()
        expect(page.get_by_text("Undone. $5.00 goes back to your card")).to_be_visible()
        expect(page.get_by_text("Undone: the refund is on its way.")).to_be_visible()
        expect(undo).to_have_count(0)
        assert Refund.objects.get().amount_minor == 500


def test_a_newcomer_sees_three_steps_which_end_when_all_are_done(browser: Browser, holder: Holder) -> None:
    with window_of(browser, holder) as page:
        holder.signs_in(page)
        done = page.locator(".first-steps .done")
        page.goto(holder.base_url + ACCOUNT)
        expect(done).to_have_count(1)
        entries.grant(user=holder.user, credits=1_000, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
        page.reload()
        expect(done).to_have_count(2)
        assert violations(page) == []
        relayed(holder.user, 1)
        page.reload()
        expect(page.get_by_role("heading", name="Your wallet")).to_be_visible()
        expect(page.locator(".first-steps")).to_have_count(0)


def test_each_network_leads_to_its_offers_and_credits_are_shown_as_money(
    browser: Browser, holder: Holder
) -> None:
    with window_of(browser, holder) as page:
        holder.signs_in(page)
        PayoutRate.objects.create(
            currency="usd", credits_per_major_unit=1_000, valid_from=now() - timedelta(days=1)
        )
        entries.grant(user=holder.user, credits=2_500, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
        network = set_up("bitlabs", offers_url="https://offers.example/?uid={reference}")
        set_up("push-report")
        page.goto(holder.base_url + ACCOUNT)
        expect(page.get_by_text("Worth $2.50.")).to_be_visible()
        section(page, "Earn")
        offers = page.get_by_role("link", name="Open the offers")
        reference = network.reference(holder.user)
        expect(offers).to_have_attribute("href", f"https://offers.example/?uid={reference}")
        expect(page.get_by_role("heading", name="Ads as notifications")).to_be_visible()
        assert violations(page) == []


def test_each_date_of_the_chart_stands_under_the_bar_of_its_day(browser: Browser, holder: Holder) -> None:
    with window_of(browser, holder) as page:
        holder.installs_extension(page)
        holder.signs_in(page)
        relayed(holder.user, 31)
        for days, call in enumerate(RelayTransaction.objects.order_by("id")):
            RelayTransaction.objects.filter(pk=call.pk).update(settled_at=now() - timedelta(days=days))
        page.goto(f"{holder.base_url}{ACCOUNT}#activity")
        expect(page.get_by_role("img", name="Credits spent per day")).to_be_visible()
        pairs = page.evaluate(
            """() => {
              const box = (node) => node.getBoundingClientRect();
              const middle = (node) => box(node).left + box(node).width / 2;
              const bars = [...document.querySelectorAll(".plot rect")];
              return [...document.querySelectorAll(".plot text[text-anchor=middle]")].map((label) => {
                const near = (a, b) => Math.abs(middle(a) - middle(label)) - Math.abs(middle(b) - middle(label));
                return [label.textContent, [...bars].sort(near)[0].textContent];
              });
            }"""
        )
        assert len(pairs) == 4
        assert [bar for label, bar in pairs if bar != f"{label}: 1"] == []


def test_the_bar_of_a_badge_agrees_with_its_text(browser: Browser, holder: Holder) -> None:
    with window_of(browser, holder) as page:
        holder.installs_extension(page)
        holder.signs_in(page)
        Badge.objects.filter(track="PERMANENT").delete()
        for name, begins in (("Bronze", 0), ("Silver", 1_000), ("Gold", 401_000)):
            levels.save_badge(badge=Badge(track="PERMANENT", name=name, exp_lower_bound=begins))
        set_experience(holder.user, permanent_experience=101_000)
        page.goto(holder.base_url + ACCOUNT)
        own = page.locator("section", has=page.get_by_role("heading", name="Your badge"))
        expect(own).to_contain_text("300,000 more experience to the next badge")
        assert own.get_by_role("progressbar").evaluate("bar => bar.position") == 0.25


def test_without_a_connection_the_page_shows_an_error_and_never_another_section(
    browser: Browser, holder: Holder
) -> None:
    with window_of(browser, holder) as page:
        holder.installs_extension(page)
        holder.signs_in(page)
        page.goto(holder.base_url + ACCOUNT)
        whole(page)
        section(page, "Earn")
        section(page, "Home")
        page.context.set_offline(True)
        page.get_by_role("link", name="Earn", exact=True).click()
        expect(page.locator(".skeleton")).to_have_count(1)
        expect(page.get_by_role("heading", name="Your credits")).to_have_count(0)
        expect(page.get_by_text("You are offline, or the service is unavailable")).to_be_visible()
        assert violations(page) == []
        page.context.set_offline(False)
        page.get_by_role("button", name="Try again").click()
        expect(page.get_by_role("heading", name="Earn credits")).to_be_visible()


def test_words_and_digits_are_of_one_language_and_the_reader_can_choose_it(
    browser: Browser, holder: Holder
) -> None:
    with window_of(browser, holder, locale="ar-EG") as page:
        holder.installs_extension(page)
        holder.signs_in(page)
        entries.grant(user=holder.user, credits=12_345, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
        page.goto(holder.base_url + ACCOUNT)
        expect(page.locator(".figure")).to_have_text("12,345 credits")
        page.get_by_role("link", name="Deutsch").click()
        expect(page.locator(".figure")).to_have_text("12.345 Credits")
        expect(page.get_by_role("navigation", name="Mein Konto")).to_contain_text("Verlauf")
        expect(page.locator("html")).to_have_attribute("lang", "de")
        assert not re.search("transactions|check-in opens", page.locator("main").inner_text())


def test_a_pack_is_bought_once_over_stripes_page_and_a_top_up_needs_a_tick(
    browser: Browser, holder: Holder
) -> None:
    with window_of(browser, holder, size=PHONE) as page:
        holder.installs_extension(page)
        holder.signs_in(page)
        shop = Shop()
        page.route("**/api/payments/packs", shop.packs)
        page.route("**/api/payments/purchaseCredits", shop.purchase)
        page.route("**/api/payments/topUp", shop.top_up)
        page.goto(f"{holder.base_url}{ACCOUNT}#plan")

        page.get_by_role("button", name="Buy for $10.00").click()
        sheet = page.get_by_role("dialog")
        expect(sheet).to_contain_text("10,500 credits")
        expect(sheet.locator(".total")).to_have_text("$10.00")
        assert violations(page) == []
        sheet.get_by_role("button", name="Do not buy").click()
        assert shop.keys == []
        page.get_by_role("button", name="Buy for $10.00").click()
        sheet.get_by_role("button", name="Pay $10.00").click()
        # Without a card at first: it is entered at Stripe, and the same purchase continues by itself.
        expect(
            page.get_by_text("Thank you. 10,500 credits for $10.00 were added to your account.")
        ).to_be_visible()
        assert len(shop.keys) == 2
        assert len(set(shop.keys)) == 1

        page.get_by_text("Another amount").click()
        amount = page.get_by_label("Amount", exact=False).and_(page.locator("[name=amount]")).last
        amount.fill("25,50")
        expect(page.get_by_text("gives 25,500 credits")).to_be_visible()
        page.locator("summary", has_text="Turn on").click()
        page.get_by_label("When I have fewer credits than").fill("3000")
        page.get_by_role("button", name="Turn on", exact=True).click()
        expect(page.get_by_text("Tick the box to agree.")).to_be_visible()
        assert shop.consent == ""
        page.get_by_label("When I have less than 3,000 credits, buy a pack for $10.00").check()
        assert violations(page) == []
        page.get_by_role("button", name="Turn on", exact=True).click()
        expect(page.get_by_text("On: you do not run out of credits.")).to_be_visible()
        assert shop.consent.startswith("When I have less than 3,000 credits, buy a pack for $10.00")
