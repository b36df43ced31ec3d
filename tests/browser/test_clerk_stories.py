"""What staff do in a day: each story with its number of clicks, in the roles that it takes."""

import re
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyotp
import pytest
from django.utils import timezone
from playwright.sync_api import Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from credits.queries import balance_of
from payments.models import PayoutRate, Refund
from payments.services import events, refunds
from payments.stripe import set_billing_client
from relay.models import RelayTransaction
from tests.browser.accessibility import violations
from tests.browser.admin_client import AdminClient, colleague, follow, look_up
from tests.factories import UserFactory, random_address
from tests.fakes.billing import FakeBilling
from tests.fakes.profiles import transfer
from tests.payments.payers import Payer
from tests.payments.webhook_events import receive_event
from tests.portal.history_rows import earned, relayed
from users.models import RecoveryCodes, User
from users.services import second_factors


class Clicks:
    """Counts the clicks of a story; a search counts as one."""

    def __init__(self, page: Page) -> None:
        self.page, self.count = page, 0

    def on(self, what: Locator) -> None:
        self.count += 1
        follow(what)

    def search(self, term: str) -> None:
        self.count += 1
        look_up(self.page, term)

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name)

    def link(self, name: str) -> Locator:
        return self.page.get_by_role("link", name=name)


@pytest.fixture
def payer(live_server: LiveServer, settings: Any) -> Iterator[Payer]:
    """A subscriber whose first month is paid out."""
    settings.STRIPE_WEBHOOK_SECRETS = [f"whsec_{secrets.token_hex(12)}"]
    begins = datetime(2020, 1, 1, tzinfo=UTC)
    PayoutRate.objects.get_or_create(
        currency="usd", valid_from=begins, defaults={"credits_per_major_unit": 1_000}
    )
    fake = FakeBilling(webhook_secrets=settings.STRIPE_WEBHOOK_SECRETS)
    set_billing_client(fake)
    payer = Payer(fake, UserFactory.create()).with_card()
    payer.upsert(1_000)
    report(fake)
    yield payer
    set_billing_client(None)


def report(fake: FakeBilling) -> None:
    for event in fake.events:
        events.process(event_id=receive_event(event, now=fake.now()).pk, now=fake.now())


def test_a_refund_shows_its_clawback_and_a_note_stays_as_written(admin: AdminClient, payer: Payer) -> None:
    page, before = admin.enter(colleague("support")), balance_of(payer.user).available
    clicks = Clicks(page)
    clicks.search(str(payer.user.profile_address))
    clicks.on(page.locator("#payments").get_by_role("link", name="Refund"))
    expect(page.locator("#credits")).to_have_text(f"{payer.payout.credits:,}")
    expect(page.locator("#available-after")).to_have_text(f"{before - payer.payout.credits:,}")
    page.locator("[name=reason]").fill("paid by mistake")
    assert violations(page) == []
    clicks.on(clicks.button("Refund $10.00"))
    expect(page.get_by_text("is being refunded by Stripe").first).to_be_visible()
    assert clicks.count == 3

    assert refunds.send_pending(now=timezone.now()) == 1
    report(payer.account)  # type: ignore[arg-type]
    assert Refund.objects.get().status == "done"
    assert balance_of(payer.user).available == before - payer.payout.credits

    clicks = Clicks(page)
    clicks.search(str(payer.user.profile_address))
    page.locator("[name=text]").fill("was told that the money takes days")
    clicks.on(clicks.button("Save note"))
    expect(page.locator("#notes .note")).to_contain_text("was told that the money takes days")
    admin.picture("notes", whole=False)
    assert clicks.count == 2

    admin.open("/admin/gateway_admin/staffaction/")
    admin.picture("audit-log", whole=False)
    wide = "() => { const table = document.querySelector('#result_list'); return table.scrollWidth - innerWidth; }"
    assert page.evaluate(wide) <= 0


def test_the_credits_of_a_failed_call_are_given_back_with_four_clicks(admin: AdminClient) -> None:
    user, to = UserFactory.create(), random_address()
    earned(user, 20)
    relayed(user, 1)
    RelayTransaction.objects.update(
        payload=transfer(to, 25 * 10**16),
        status="Failed",
        failure_code="reverted",
        failure_detail="It reverted.",
    )
    row, before = RelayTransaction.objects.get(), balance_of(user).balance
    page = admin.enter(colleague("support"))
    clicks = Clicks(page)
    clicks.search(str(user.profile_address))
    sentence = f"Sent 0.25 LYX to {to[:6]}…{to[-4:]}"
    expect(page.locator("td[data-deeds]")).to_have_text(sentence)
    clicks.on(page.get_by_role("link", name=row.transaction_hash[:10]).last)
    expect(page.locator("[data-deeds]")).to_have_text(sentence)
    assert violations(page) == []
    admin.picture("call-of-a-person")
    clicks.on(clicks.link("Give these credits back"))
    expect(page.locator("[name=reason]")).to_have_value(re.compile("reverted without a reason"))
    clicks.on(clicks.button("Give these credits back"))
    expect(page.get_by_text("+1 credits were posted").first).to_be_visible()
    assert (clicks.count, balance_of(user).balance) == (4, before + 1)


def test_a_colleague_sets_up_the_phone_at_the_first_login(
    admin: AdminClient, live_server: LiveServer
) -> None:
    person = colleague("support").user
    second_factors.reset(person)
    password = secrets.token_urlsafe(16)
    User.objects.filter(pk=person.pk).update(is_active=True)
    person.set_password(password)
    person.save()
    page = admin.open("/admin/")
    clicks = Clicks(page)
    page.get_by_label("Username").fill(person.username)
    page.locator("#id_password").fill(password)
    clicks.on(clicks.button("Log in"))
    admin.picture("enrol")
    assert violations(page) == []
    key = page.locator("#key").inner_text()
    page.locator("[name=token]").fill(pyotp.TOTP(key).now())
    clicks.on(clicks.button("Set up this phone"))
    expect(page.locator("#codes li")).to_have_count(10)
    admin.picture("recovery-codes")
    assert violations(page) == []
    clicks.on(clicks.link("I have saved them"))
    expect(page).to_have_url(f"{admin.base_url}/admin/")
    assert len(RecoveryCodes.objects.get(user=person).hashes) == 10
    assert clicks.count == 3
