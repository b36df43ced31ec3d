"""The page of a sponsor's members in a browser; SCREENSHOTS names a folder that keeps pictures of it."""

import random
import re
import secrets
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core import mail
from django.utils.timezone import now
from django_otp.oath import totp
from playwright.sync_api import Browser, Page, ViewportSize, expect
from pytest_django.live_server_helper import LiveServer

from credits.services import entries, holds
from relay.models import RelayTransaction
from sponsors.models import (
    ApiKey,
    Member,
    MemberSession,
    Policy,
    PolicyVersion,
    RefusedRequest,
    Sponsor,
    SponsoredCall,
    VoucherSigner,
)
from sponsors.services import members, refusals
from tests.browser.accessibility import violations
from tests.browser.account_page import DESKTOP, PHONE, Holder, Shop, fault, holding, whole, window_of
from tests.browser.admin_client import Scheme
from tests.browser.words import Words
from tests.database import rewrite
from tests.factories import UserFactory, random_address
from tests.fakes.profiles import transfer
from tests.portal.history_rows import relayed
from tests.sponsors.sponsorships import make_policy, make_sponsor, new_version
from tests.sponsors.test_paying_together import pay
from users.models import Phone
from webhooks.models import TO_SPONSORS, Endpoint, Message
from webhooks.services import delivery, endpoints

pytestmark = pytest.mark.django_db(transaction=True)
SPONSOR = "/sponsor"
_SECTIONS = ("Overview", "Policies", "Calls", "Spend", "Funds", "Webhooks", "Access")
_URL = "https://hooks.example.org/relay/sponsors/my-dapp"
_ENGLISH = Words("en")


@pytest.fixture
def holder(live_server: LiveServer, settings: Any) -> Iterator[Holder]:
    with holding(live_server, settings) as one:
        yield one


def owned(holder: Holder, page: Page, role: str = "owner") -> Sponsor:
    """Return a sponsor that the signed-in holder acts for."""
    holder.installs_extension(page)
    holder.signs_in(page)
    sponsor = make_sponsor(1_250_000)
    Member.objects.create(sponsor=sponsor, user=holder.user, role=role)
    return sponsor


def busy(sponsor: Sponsor) -> None:
    """Let the sponsor have policies, calls of some weeks on contracts, and refusals."""
    contract = random_address()
    paying = make_policy(
        sponsor,
        targets=[
            {"contract": contract, "functions": ["0x760d9bba", "0x"]},
            {"contract": "profile", "functions": []},
        ],
        campaign_credits=400_000,
        user_day_credits=2_000,
        user_calls=10,
        profiles="new",
        new_since=now() - timedelta(days=30),
        window_seconds=3_600,
        window_credits=50_000,
    )
    make_policy(sponsor, position=1, profiles="vouched", share_percent=50, gas_price_ceiling_wei=25 * 10**8)
    users = [UserFactory.create() for _ in range(6)]
    for user in users:
        relayed(user, 4)
    for place, call in enumerate(RelayTransaction.objects.filter(user__in=users)):
        assert pay(paying, call.user, random.randint(150, 400)) is None
        sponsored = SponsoredCall.objects.latest("pk")
        accepted_at = now() - timedelta(days=random.randint(0, 25))
        if place % 4:
            holds.close(costs={sponsored.sponsor_hold_id: sponsored.counted_credits})
        rewrite(SponsoredCall.objects.filter(pk=sponsored.pk), hold=call.hold_id, accepted_at=accepted_at)
        if place % 3:
            RelayTransaction.objects.filter(pk=call.pk).update(payload=transfer(contract, 10**17))
    for place, response in enumerate(("", "status 404", "none within a second")):
        RefusedRequest.objects.create(
            sponsor=sponsor,
            user=users[place],
            key=secrets.token_hex(32),
            rule="sponsor-verifier-unknown" if response else "sponsor-target",
            policy=paying.policy.name,
            server_response=response,
            actions=[[contract, "0x760d9bba"], [random_address(), "0x"]][: place + 1],
            credits=random.randint(100, 400),
            gas_price_wei=10**9,
            requests=place + 1,
            refused_at=now() - timedelta(minutes=place),
        )
    refused = ["sponsor-limit-user-day"] * 9 + ["sponsor-target"] * 4 + ["sponsor-voucher-missing"]
    refusals.count([(sponsor.slug, rule) for rule in refused], now=now())


def posted_to(sponsor: Sponsor, *statuses: int | None) -> Endpoint:
    """Give the sponsor an endpoint, and a message with one attempt for each status; None is without a response."""
    endpoint, _ = endpoints.create_for_sponsor(sponsor, url=_URL, event_types=TO_SPONSORS, maker=None)
    for status in statuses:
        message = endpoints.send_test(endpoint, now=now())
        Message.objects.filter(pk=message.pk).update(attempts=1)
        message.refresh_from_db()
        error = "" if status else "The connection was refused."
        delivery.record(message, delivery.Result(now(), 40, status, "", error), now=now())
    return endpoint


def section(page: Page, name: str, words: Words = _ENGLISH) -> None:
    """Open a section of the page, and wait until it is whole."""
    menu = page.get_by_role("navigation", name=words("Sponsors"))
    link = menu.get_by_role("link", name=words(name), exact=True)
    link.click()
    expect(link).to_have_attribute("aria-current", "page")
    whole(page)


@pytest.mark.parametrize(
    ("size", "scheme", "language"),
    [
        pytest.param(DESKTOP, "light", "en", id="desktop-light-en"),
        pytest.param(PHONE, "dark", "de", id="phone-dark-de"),
    ],
)
def test_every_section_is_whole_and_accessible_at_each_size_in_both_schemes_and_languages(
    browser: Browser,
    holder: Holder,
    pictures: Path | None,
    size: ViewportSize,
    scheme: Scheme,
    language: str,
) -> None:
    words = Words(language)
    with window_of(browser, holder, size=size, scheme=scheme, locale=language) as page:
        sponsor = owned(holder, page)
        busy(sponsor)
        posted_to(sponsor, 204, 503, None)
        members.put(sponsor=sponsor, profile_address=str(UserFactory.create().profile_address), role="viewer")
        page.goto(holder.base_url + SPONSOR)
        whole(page)
        for name in _SECTIONS:
            section(page, name, words)
            if name == "Access":
                page.get_by_text(words("Create a key")).first.click()
            if name == "Webhooks":
                page.get_by_text(words("Add an endpoint")).first.click()
                page.get_by_role("button", name=words("Deliveries")).click()
                expect(page.get_by_role("table", name=words("Newest messages"))).to_be_visible()
            assert violations(page) == [], name
            assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], name
            if pictures:
                kind = f"{name.lower()}-{'phone' if size == PHONE else 'desktop'}-{scheme}-{language}"
                page.screenshot(path=pictures / f"sponsor-{kind}.png", full_page=True)


_SIZES = pytest.mark.parametrize(
    ("size", "language"),
    [
        pytest.param(size, language, id=f"{kind}-{language}")
        for kind, size in (("desktop", DESKTOP), ("phone", PHONE))
        for language in ("en", "de")
    ],
)


@_SIZES
def test_without_a_session_the_page_says_what_a_sponsor_is(
    browser: Browser, holder: Holder, pictures: Path | None, size: ViewportSize, language: str
) -> None:
    words = Words(language)
    with window_of(browser, holder, size=size, locale=language) as page:
        holder.installs_extension(page)
        page.goto(holder.base_url + SPONSOR)
        whole(page)
        # Before anything else, and on the first screen.
        title = page.get_by_role("heading", name=words("Pay for your users’ transactions"))
        expect(title).to_be_in_viewport()
        expect(page.get_by_text("Relay-Sponsor: my-dapp")).to_be_in_viewport()
        expect(page.get_by_role("heading", name=words("Sign in with your Universal Profile"))).to_be_visible()
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        keep(page, pictures, f"signed-out-{language}-{size['width']}")


@_SIZES
def test_a_person_opens_a_sponsor_and_sees_its_first_call(
    browser: Browser, holder: Holder, pictures: Path | None, size: ViewportSize, language: str
) -> None:
    words, kind = Words(language), f"{language}-{size['width']}"
    slug, calls = f"s-{secrets.token_hex(6)}", random.randint(2, 9)
    with window_of(browser, holder, size=size, locale=language) as page:
        holder.installs_extension(page)
        holder.signs_in(page)
        page.goto(holder.base_url + SPONSOR)
        page.locator("[name=displayName]").fill("My dApp")
        page.locator("[name=slug]").fill("My dApp")
        page.locator("[name=userCalls]").fill(str(calls))
        page.get_by_role("button", name=words("Open the sponsor")).click()
        expect(page.get_by_role("alert")).to_contain_text(
            words("The name in requests has 3 to 40 small letters, digits and hyphens.")
        )
        assert not Sponsor.objects.exists()
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        keep(page, pictures, f"open-{kind}")
        page.locator("[name=slug]").fill(slug)
        page.get_by_role("button", name=words("Open the sponsor")).click()
        expect(page.get_by_role("heading", name=words("Alarm"))).to_be_visible()
        expect(page.locator("#message")).to_contain_text(
            words("{name} is open. It pays as soon as it has credits.", name="My dApp")
        )
        expect(page.locator("#intro")).to_be_hidden()
        sponsor = Sponsor.objects.get()
        terms = PolicyVersion.objects.get()
        assert (sponsor.slug, sponsor.name, sponsor.opened_by) == (slug, "My dApp", holder.user)
        assert (terms.policy.name, terms.profiles, terms.user_calls) == ("first-calls", "new", calls)
        keep(page, pictures, f"opened-{kind}")

        entries.adjust_sponsor(
            sponsor_id=sponsor.pk, credits=9_000, key=secrets.token_hex(8), actor=None, reason="a pack"
        )
        cost = random.randint(100, 999)
        assert pay(terms, UserFactory.create(), cost) is None
        section(page, "Overview", words)
        expect(page.locator(".figure")).to_contain_text(words.number(9_000 - cost))
        expect(page.locator(".facts")).to_contain_text(words.number(cost))
        assert violations(page) == []
        keep(page, pictures, f"first-call-{kind}")
        section(page, "Policies", words)
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        keep(page, pictures, f"policies-{kind}")


def test_an_owner_writes_each_template_and_switches_policies(browser: Browser, holder: Holder) -> None:
    contract, token, signer = random_address(), random_address(), random_address()
    with window_of(browser, holder, size=PHONE) as page:
        sponsor = owned(holder, page)
        Sponsor.objects.filter(pk=sponsor.pk).update(day_credits=5_000, month_credits=50_000)
        page.goto(f"{holder.base_url}{SPONSOR}#policies")
        template = page.locator("[name=template]")

        def save() -> None:
            page.get_by_role("button", name="Save the terms").click()
            expect(page.locator("#message")).to_contain_text("Saved.")
            page.locator("#message").get_by_role("button", name="Close").click()

        template.select_option("contract")
        page.locator("[name=contract]").fill("0x12")
        page.get_by_role("button", name="Save the terms").click()
        expect(page.get_by_text("Enter an address: 0x and 40 more characters.")).to_be_visible()
        page.locator("[name=contract]").fill(contract.lower())
        page.locator("[name=functions]").fill("follow\nmint(address to, uint256 amount)")
        page.locator("[name=campaignCredits]").fill("70000")
        save()
        template.select_option("holders")
        page.locator("[name=counterpart]").fill(token)
        page.locator("[name=leastBalance]").fill("1" + 20 * "0")
        save()
        template.select_option("vouchers")
        page.locator("[name=signer]").fill(signer)
        page.locator("[name=policy]").fill("guests")
        save()
        stored = {
            each.policy.name: (
                each.targets,
                each.profiles,
                each.counterpart,
                each.least_balance,
                each.campaign_credits,
            )
            for each in PolicyVersion.objects.select_related("policy")
        }
        functions = ["0x4dbf27cc", "0x40c10f19"]
        assert stored == {
            "contract": ([{"contract": contract, "functions": functions}], "all", None, None, 70_000),
            "holders": ([], "holding", token, 10**20, None),
            "guests": ([], "vouched", None, None, None),
        }
        assert VoucherSigner.objects.get().address == signer
        expect(page.get_by_role("table", name="Keys that sign vouchers")).to_be_visible()
        page.get_by_role("button", name="Switch off").first.click()
        expect(page.get_by_role("button", name="Switch on")).to_be_visible()
        assert not Policy.objects.get(name="contract").is_enabled
        page.get_by_role("button", name="Remove").click()
        expect(page.get_by_role("table", name="Keys that sign vouchers")).to_have_count(0)
        assert VoucherSigner.objects.get().removed_at is not None
        assert violations(page) == []


@pytest.mark.parametrize(
    ("size", "language"),
    [pytest.param(DESKTOP, "en", id="desktop-en"), pytest.param(PHONE, "de", id="phone-de")],
)
def test_an_owner_writes_a_policy_for_newcomers_and_errors_are_beside_their_fields(
    browser: Browser, holder: Holder, pictures: Path | None, size: ViewportSize, language: str
) -> None:
    words = Words(language)
    with window_of(browser, holder, size=size, locale=language) as page:
        sponsor = owned(holder, page)
        Sponsor.objects.filter(pk=sponsor.pk).update(day_credits=50_000, month_credits=500_000)
        page.goto(f"{holder.base_url}{SPONSOR}#policies")
        page.locator("[name=template]").select_option("newcomers")
        fault = page.locator("form:has([name=template]) .bad")

        def refused(name: str, why: str, **values: str) -> None:
            """Write the values, and see the error below the field, which has the focus."""
            for each, value in values.items():
                page.locator(f"[name={each}]").fill(value)
            page.get_by_role("button", name=words("Save the terms")).click()
            expect(fault).to_have_text(why)
            wrong = page.locator(f"label:has([name={name}]) + .bad")
            expect(wrong).to_have_text(why)
            expect(page.locator("[aria-invalid]")).to_have_attribute("name", name)
            expect(page.locator(f"[name={name}]")).to_be_focused()

        whole_number = words("Enter whole numbers above 0.")
        refused("windowCalls", whole_number, windowCalls="many")
        refused("windowHours", whole_number, windowCalls="40", windowHours="0.5")
        refused("originCalls", whole_number, windowHours="12", campaignCalls="900", originCalls="-1")
        days = words("First credits expire: enter 1 to {number} days.").replace("{number}", "365")
        refused("firstDays", days, originCalls="3", firstCredits="2500")
        refused("firstDays", days, firstDays="366")
        page.locator("[name=firstDays]").fill("30")
        expect(page.locator("label:has([name=firstCredits]) .hint")).to_contain_text(re.compile(r"\d"))
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        keep(page, pictures, f"newcomers-{language}-{size['width']}")
        page.get_by_role("button", name=words("Save the terms")).click()
        expect(page.locator("#message")).to_contain_text(words("Saved."))
        shown = page.locator("article.policy")
        for term in (
            "First credits",
            "First credits expire after",
            "Number per origin and day",
            "Number in total",
        ):
            expect(shown.get_by_role("term").filter(has_text=re.compile(f"^{words(term)}$"))).to_be_visible()
    version = PolicyVersion.objects.get(policy__name="newcomers")
    assert (version.purpose, version.chain_id) == ("profiles", None)
    assert (version.window_calls, version.window_seconds, version.campaign_calls) == (40, 12 * 3_600, 900)
    assert (version.origin_calls, version.first_credits, version.first_days) == (3, 2_500, 30)


@pytest.mark.parametrize(
    ("size", "language"),
    [pytest.param(DESKTOP, "en", id="desktop-en"), pytest.param(PHONE, "de", id="phone-de")],
)
def test_an_owner_previews_a_draft_over_the_newest_calls(
    browser: Browser, holder: Holder, pictures: Path | None, size: ViewportSize, language: str
) -> None:
    words = Words(language)
    with window_of(browser, holder, size=size, locale=language) as page:
        sponsor = owned(holder, page)
        Sponsor.objects.filter(pk=sponsor.pk).update(day_credits=50_000, month_credits=50_000)
        page.goto(f"{holder.base_url}{SPONSOR}#policies")
        preview = page.get_by_role("button", name=words("Preview"))
        preview.click()
        expect(
            page.get_by_text(
                words("Neither you nor others have calls over which these terms can be previewed.")
            )
        ).to_be_visible()
        busy(sponsor)
        RelayTransaction.objects.filter(payload=b"").update(payload=transfer(random_address(), 1))
        paid, cheap = SponsoredCall.objects.count(), random.randint(100, 300)
        page.locator("[name=callCredits]").fill("0")
        preview.click()
        expect(page.get_by_text(words("Enter whole numbers above 0."))).to_be_visible()
        page.locator("[name=template]").select_option("vouchers")
        page.locator("[name=signer]").fill(random_address())
        page.locator("[name=callCredits]").fill(str(cheap))
        preview.click()
        costs = [
            hold.amount + call.hold.amount
            for call in SponsoredCall.objects.all()
            for hold in [call.sponsor_hold]
        ]
        costs += RefusedRequest.objects.values_list("credits", flat=True)
        fits = sum(cost <= cheap for cost in costs)
        notice = page.locator(".notice strong")
        expect(notice).to_contain_text(str(paid + 3))
        assert re.findall(r"\d+", notice.inner_text())[:2] == [str(paid + 3), str(fits)]
        expect(page.get_by_role("link", name=words("Limit per call"))).to_be_visible()
        expect(
            page.get_by_text(
                words(
                    "The preview assumes that each call has a voucher, or each profile the token or the follow."
                )
            )
        ).to_be_visible()
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        keep(page, pictures, f"preview-{language}-{size['width']}")

        # Without a budget nobody but staff saves terms, and a draft is previewed all the same.
        Sponsor.objects.filter(pk=sponsor.pk).update(day_credits=None, month_credits=None)
        page.reload()
        expect(page.get_by_role("heading", name=words("Preview a policy"))).to_be_visible()
        expect(page.get_by_role("button", name=words("Save the terms"))).to_have_count(0)
        page.locator("[name=template]").select_option("vouchers")
        page.locator("[name=signer]").fill(random_address())
        page.locator("[name=callCredits]").fill(str(cheap))
        preview.click()
        expect(notice).to_contain_text(str(paid + 3))
        assert re.findall(r"\d+", notice.inner_text())[:2] == [str(paid + 3), str(fits)]
        assert violations(page) == []
        keep(page, pictures, f"preview-only-{language}-{size['width']}")
    assert (Policy.objects.filter(sponsor=sponsor).count(), VoucherSigner.objects.count()) == (2, 0)


def test_a_person_without_a_sponsor_is_sent_to_the_operator_where_only_staff_open_them(
    browser: Browser, holder: Holder, settings: Any
) -> None:
    settings.SPONSOR_SELF_SERVICE = False
    with window_of(browser, holder) as page:
        holder.installs_extension(page)
        page.goto(holder.base_url + SPONSOR)
        expect(page.locator("#intro")).to_contain_text("Ask the operator")
        page.get_by_role("button", name="Sign in with Universal Profiles").click()
        expect(page.get_by_role("heading", name="You are not a member of a sponsor")).to_be_visible()
        expect(page.get_by_role("button", name="Open the sponsor")).to_have_count(0)


def test_the_first_screen_shows_credits_spending_and_refused_calls(browser: Browser, holder: Holder) -> None:
    with window_of(browser, holder) as page:
        sponsor = owned(holder, page)
        busy(sponsor)
        page.goto(holder.base_url + SPONSOR)
        expect(page.locator(".figure")).to_contain_text("credits")
        expect(page.get_by_text(f"Relay-Sponsor: {sponsor.slug}")).to_be_visible()
        expect(page.get_by_role("table", name="Refused in the last 30 days, by rule")).to_contain_text(
            "Daily limit per user"
        )
        expect(page.get_by_role("img", name="Credits spent per day")).to_be_visible()
        with page.expect_download() as download:
            page.get_by_role("button", name="Entries as a spreadsheet").click()
        assert "1250000" in download.value.path().read_text()
        section(page, "Policies")
        limited = Policy.objects.get(sponsor=sponsor, position=0)
        expect(page.get_by_role("progressbar", name=f"Used of {limited.name}")).to_be_visible()
        section(page, "Spend")
        expect(page.get_by_role("table", name="By user, in 30 days").locator("tbody tr")).to_have_count(6)
        expect(page.locator("main")).not_to_contain_text(str(holder.user.profile_address)[2:8])


def test_an_owner_sees_single_calls_with_hashes_and_refusals_with_the_response_of_the_server(
    browser: Browser, holder: Holder
) -> None:
    with window_of(browser, holder) as page:
        sponsor = owned(holder, page)
        busy(sponsor)
        newest = RelayTransaction.objects.get(hold__sponsored=SponsoredCall.objects.latest("accepted_at"))
        RelayTransaction.objects.filter(pk=newest.pk).update(payload=transfer(random_address(), 1))
        page.goto(f"{holder.base_url}{SPONSOR}#calls")
        rows = page.get_by_role("table", name="Newest calls and refusals").locator("tbody tr")
        expect(rows).to_have_count(SponsoredCall.objects.count() + 3)
        expect(
            rows.filter(has_text="Your server gave no valid response: status 404 (2 times)")
        ).to_have_count(1)
        expect(rows.filter(has_text="none within a second (3 times)")).to_contain_text("and 1 more")
        page.locator("[name=kind]").select_option("refused")
        expect(rows).to_have_count(3)
        expect(rows.first).to_contain_text("Contract or function not listed")
        page.locator("[name=kind]").select_option("paid")
        expect(rows).to_have_count(SponsoredCall.objects.count())
        link = rows.first.get_by_role("link").last
        expect(link).to_have_attribute("href", re.compile(f"/tx/{newest.transaction_hash}$"))
        Member.objects.update(role="manager")
        page.reload()
        expect(page.get_by_text("Owners see single calls")).to_be_visible()
        expect(page.get_by_role("table")).to_have_count(0)


def test_the_simulator_shows_the_paying_policy_or_the_refusing_rule(browser: Browser, holder: Holder) -> None:
    with window_of(browser, holder) as page:
        sponsor = owned(holder, page, "viewer")
        contract = random_address()
        policy = make_policy(sponsor, targets=[{"contract": contract, "functions": []}]).policy
        page.goto(f"{holder.base_url}{SPONSOR}#policies")
        hash_ = page.locator("[name=transactionHash]")
        hash_.fill("0x12")
        page.get_by_role("button", name="Ask").click()
        expect(page.get_by_text("Enter a transaction's hash: 0x and 64 more characters.")).to_be_visible()
        hash_.fill("0x" + secrets.token_hex(32))
        page.get_by_role("button", name="Ask").click()
        expect(fault(page)).to_contain_text("The service has executed no call with this hash")
        hash_.fill("")
        page.locator("[name=profile]").fill(random_address())
        page.locator("[name=actions]").fill(f"{contract} 0x760d9bba")
        page.get_by_role("button", name="Ask").click()
        expect(page.get_by_text(f"Yes: {policy.name} pays 250 credits.")).to_be_visible()
        new_version(policy, call_credits=249)
        page.get_by_role("button", name="Ask").click()
        expect(page.get_by_text("No: Limit per call.")).to_be_visible()
        assert violations(page) == []


def test_an_owner_adds_a_member_and_makes_a_key_that_is_shown_once(browser: Browser, holder: Holder) -> None:
    with window_of(browser, holder, size=PHONE) as page:
        sponsor = owned(holder, page)
        newcomer = UserFactory.create()
        page.goto(f"{holder.base_url}{SPONSOR}#access")
        page.locator("[name=address]").fill(str(newcomer.profile_address).lower())
        page.get_by_role("button", name="Add the member").click()
        expect(page.locator("#message")).to_contain_text("Saved.")
        assert Member.objects.get(sponsor=sponsor, user=newcomer).role == "viewer"

        page.get_by_text("Create a key").first.click()
        page.locator("[name=name]").fill("server")
        page.get_by_role("button", name="Create the key").click()
        shown = page.locator(".notice code")
        expect(shown).to_contain_text("sponsor_")
        assert violations(page) == []
        text = shown.text_content() or ""
        page.get_by_role("button", name="I have kept it").click()
        expect(page.get_by_role("table", name="Keys of your servers")).to_contain_text("server")
        expect(page.get_by_text(text)).to_have_count(0)
        page.get_by_role("button", name="Revoke").click()
        page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        expect(page.get_by_role("table", name="Keys of your servers")).to_have_count(0)
        assert ApiKey.objects.get().revoked_at is not None


def test_a_manager_adds_an_endpoint_follows_its_messages_and_deletes_it(
    browser: Browser, holder: Holder
) -> None:
    with window_of(browser, holder, size=PHONE) as page:
        sponsor = owned(holder, page, "manager")
        page.goto(f"{holder.base_url}{SPONSOR}#webhooks")
        page.get_by_text("Add an endpoint").first.click()
        page.get_by_role("button", name="Add the endpoint").click()
        expect(page.get_by_text("Enter an address that begins with https://.")).to_be_visible()
        page.locator("[name=url]").fill("http://127.0.0.1/")
        page.get_by_role("button", name="Add the endpoint").click()
        expect(fault(page)).to_be_visible()
        assert not Endpoint.objects.exists()

        page.locator("[name=url]").fill(_URL)
        page.get_by_label("Credits are above the alarm again").uncheck()
        page.get_by_role("button", name="Add the endpoint").click()
        shown = page.locator(".notice code")
        expect(shown).to_contain_text("whsec_")
        assert violations(page) == []
        row, secret = Endpoint.objects.get(sponsor=sponsor), shown.text_content() or ""
        assert endpoints.live_secrets(row) == [secret]
        assert set(row.event_types) == set(TO_SPONSORS) - {"sponsor.recovered"}
        page.get_by_role("button", name="I have kept it").click()
        expect(page.get_by_role("table", name="Endpoints")).to_contain_text(_URL)
        expect(page.get_by_text(secret)).to_have_count(0)

        page.get_by_role("button", name="Send a test").click()
        messages = page.get_by_role("table", name="Newest messages")
        expect(messages).to_contain_text("waiting")
        Message.objects.update(status=Message.Status.GIVEN_UP, finished_at=now())
        page.get_by_role("button", name="Refresh").click()
        expect(messages).to_contain_text("given up")
        page.get_by_role("button", name="Send again").click()
        expect(messages).to_contain_text("waiting")
        assert Message.objects.get().status == Message.Status.WAITING
        assert violations(page) == []

        page.get_by_role("button", name="New secret").click()
        expect(shown).to_contain_text("whsec_")
        assert endpoints.live_secrets(Endpoint.objects.get()) == [shown.text_content(), secret]
        page.get_by_role("button", name="Delete").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(page.get_by_text("No endpoint yet.")).to_be_visible()
        assert not Endpoint.objects.get().is_enabled


def test_a_manager_sets_the_alarm_and_sees_where_to_save_a_card(browser: Browser, holder: Holder) -> None:
    with window_of(browser, holder, size=PHONE) as page:
        sponsor = owned(holder, page, "manager")
        shop = Shop()
        page.route("**/api/payments/packs", shop.packs)
        page.route("**/purchases", shop.purchase)
        page.goto(f"{holder.base_url}{SPONSOR}#funds")
        limit = random.randint(1_000, 9_999)
        page.locator("[name=limit]").fill(str(limit))
        page.get_by_role("button", name="Save the alarm").click()
        expect(
            page.get_by_text(f"Members are notified when fewer than {limit:,} credits are left.")
        ).to_be_visible()
        assert Sponsor.objects.get(pk=sponsor.pk).alarm_credits == limit
        page.get_by_role("button", name="Buy for $10.00").click()
        expect(page.get_by_role("link", name="Save a card on your account page")).to_be_visible()
        page.get_by_role("button", name="Buy for $10.00").click()
        expect(
            page.get_by_text("10,500 credits for $10.00 were added to the sponsor's account.")
        ).to_be_visible()
        assert len(set(shop.keys)) == 1
        assert violations(page) == []


def test_an_invited_person_sets_up_password_and_phone_and_signs_in_without_a_wallet(
    browser: Browser, holder: Holder, settings: Any, pictures: Path | None
) -> None:
    settings.EMAIL_HOST = "mail.example.org"
    email, password = f"p{secrets.token_hex(4)}@example.org", secrets.token_urlsafe(12)
    with window_of(browser, holder) as page:
        sponsor = owned(holder, page)
        page.goto(f"{holder.base_url}{SPONSOR}#access")
        page.get_by_text("Invite by e-mail").click()
        page.locator("[name=email]").fill(email)
        page.get_by_role("button", name="Send the invitation").click()
        code = page.locator(".notice code").text_content() or ""
        assert violations(page) == []
        keep(page, pictures, "invite")
        page.get_by_role("button", name="I have kept it").click()
        expect(page.get_by_role("table", name="Members")).to_contain_text(f"{email} invited")
    [link] = re.findall(r"/sponsor#invitation/\S+", str(mail.outbox[0].body))
    with window_of(browser, holder, size=PHONE) as page:
        page.goto(holder.base_url + link)
        page.locator("[name=code]").fill(code)
        for name in ("password", "again"):
            page.locator(f"[name={name}]").fill(password)
        assert "invitation" not in page.url
        assert violations(page) == []
        keep(page, pictures, "invitation")
        page.get_by_role("button", name="Save the password").click()
        expect(page.get_by_role("heading", name="Set up your phone")).to_be_visible()
        assert violations(page) == []
        keep(page, pictures, "phone")
        phone = Phone.objects.get(user__memberships__email=email)
        page.locator("[name=password]").fill(password)
        page.locator("[name=code]").fill(f"{totp(bytes.fromhex(phone.key)):06}")
        page.get_by_role("button", name="Sign in", exact=True).click()
        expect(page.locator(".figure")).to_contain_text("credits")
        expect(page.locator("#who")).to_contain_text(email)
        for name in _SECTIONS:
            section(page, name)
            assert violations(page) == [], name
        page.reload()
        expect(page.locator("#who")).to_contain_text(email)
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Sign in with e-mail, password and code")).to_be_visible()
        assert violations(page) == []
        keep(page, pictures, "sign-in")
        assert not MemberSession.objects.filter(member__sponsor=sponsor).exists()


def keep(page: Page, pictures: Path | None, name: str) -> None:
    if pictures:
        page.screenshot(path=pictures / f"sponsor-{name}.png", full_page=True)


def test_a_viewer_is_offered_nothing_that_changes_and_can_leave(browser: Browser, holder: Holder) -> None:
    with window_of(browser, holder) as page:
        sponsor = owned(holder, page, "viewer")
        members.put(sponsor=sponsor, profile_address=str(UserFactory.create().profile_address), role="owner")
        page.goto(f"{holder.base_url}{SPONSOR}#access")
        expect(page.get_by_text("Owners add and remove members.")).to_be_visible()
        expect(page.get_by_role("button", name="Create the key")).to_have_count(0)
        expect(page.get_by_role("button", name="Remove")).to_have_count(0)
        posted_to(sponsor, 204)
        section(page, "Webhooks")
        page.get_by_role("button", name="Deliveries").click()
        expect(page.get_by_role("table", name="Newest messages")).to_contain_text("delivered")
        assert page.locator("main").get_by_role("button").all_text_contents() == ["Deliveries", "Refresh"]
        section(page, "Access")
        page.get_by_role("button", name="Leave").click()
        page.get_by_role("dialog").get_by_role("button", name="Leave").click()
        expect(page.get_by_role("heading", name="Open a sponsor")).to_be_visible()
        assert not Member.objects.filter(sponsor=sponsor, user=holder.user).exists()
        assert violations(page) == []


def test_a_member_of_several_sponsors_chooses_one_and_the_page_uses_one_language(
    browser: Browser, holder: Holder
) -> None:
    with window_of(browser, holder, locale="de-DE") as page:
        first = owned(holder, page)
        name = f"Zweiter {secrets.token_hex(3)}"
        second = make_sponsor(7, slug=f"z-{secrets.token_hex(6)}")
        Sponsor.objects.filter(pk=second.pk).update(name=name)
        Member.objects.create(sponsor=second, user=holder.user, role="viewer")
        page.goto(holder.base_url + SPONSOR)
        expect(page.locator(".figure")).to_have_text("1.250.000 Credits")
        page.get_by_role("combobox", name="Sponsor").select_option(label=name)
        expect(page.locator(".figure")).to_have_text("7 Credits")
        expect(page.locator("main")).not_to_contain_text(first.slug)
        page.reload()
        expect(page.locator(".figure")).to_have_text("7 Credits")
