"""What a change does is shown before it is saved, and saved by one more click."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from earnings.models import AdNetwork
from gateway.staff import approvals
from gateway.staff.models import ApprovalRequest
from payments.models import PayoutRate
from rewards.models import Badge
from rewards.services import levels
from tests.browser.accessibility import violations
from tests.browser.admin_client import AdminClient, colleague, follow
from tests.earnings.ad_networks import set_up
from tests.factories import UserFactory
from tests.rewards.rows import set_experience
from tests.staff import member


def _save(page: Page) -> None:
    follow(page.get_by_role("button", name="Save", exact=True))


def _ask(page: Page, role: str) -> None:
    """Ask for approval, which is not the asker's to give, and have it given."""
    expect(page.get_by_text("You cannot approve it yourself.").first).to_be_visible()
    assert violations(page) == []
    page.locator("[name=why-reason]").fill("agreed with the board")
    follow(page.get_by_role("button", name="Ask for approval", exact=True))
    expect(page.get_by_text("This is your own request.").first).to_be_visible()
    expect(page.get_by_role("link", name="Approve")).to_have_count(0)
    approvals.approve(request_id=ApprovalRequest.objects.get().pk, actor=member(role), reason="agreed")


def test_a_payout_rate(admin: AdminClient, live_server: LiveServer) -> None:
    for currency, rate in (("usd", 1_000), ("eur", 1_100)):
        PayoutRate.objects.update_or_create(
            currency=currency,
            valid_from=timezone.now() - timedelta(days=400),
            defaults={"credits_per_major_unit": rate},
        )
    page = admin.enter(colleague("finance"), "/admin/payments/payoutrate/add/")
    expect(page.get_by_role("heading", name="Rates today")).to_be_visible()
    admin.picture("payout-rate-add")
    begins = timezone.now() + timedelta(days=3)
    page.locator("[name=currency]").fill("usd")
    page.locator("[name=credits_per_major_unit]").fill("1250")
    page.locator("[name=valid_from_0]").fill(f"{begins:%Y-%m-%d}")
    page.locator("[name=valid_from_1]").fill("06:00:00")
    before = PayoutRate.objects.count()

    _save(page)

    sentence = f"10.00 USD pays out 12,500 instead of 10,000 credits from {begins:%Y-%m-%d} 06:00 UTC."
    expect(page.get_by_text(sentence)).to_be_visible()
    expect(
        page.get_by_role("heading", name=f"Add a payout rate: 1.00 usd = 1250 credits from {begins:%Y-%m-%d}")
    ).to_be_visible()
    admin.picture("payout-rate-preview")
    assert PayoutRate.objects.count() == before
    _ask(page, "operations")
    assert PayoutRate.objects.latest("pk").credits_per_major_unit == 1_250


def test_a_networks_rate(admin: AdminClient, live_server: LiveServer) -> None:
    network = set_up("tapjoy", rate=Decimal("1.5"), per_event_cap=500)
    for amount in ("20", "180"):
        network.send(network.reward(UserFactory.create(), amount=amount))
    page = admin.enter(colleague("operations"), f"/admin/earnings/adnetwork/{network.row.pk}/change/")
    page.locator("[name=rate]").fill("3")

    _save(page)

    expect(page.get_by_text("1.00 of the network's unit yields 3 instead of 1 credits")).to_be_visible()
    lately = page.get_by_label("The last 30 days").get_by_role("row").last
    expect(lately).to_have_text("2300601")
    admin.picture("network-rate-preview")
    assert AdNetwork.objects.get().rate == Decimal("1.5")
    _ask(page, "finance")
    assert AdNetwork.objects.get().rate == 3


@pytest.fixture
def badges(live_server: LiveServer) -> list[Badge]:
    """Three badges; transactional tests lose the badges that a migration has made."""
    Badge.objects.filter(track="PERMANENT").delete()
    for name, begins in (("Bronze", 0), ("Silver", 1_000), ("Gold", 5_000)):
        levels.save_badge(badge=Badge(track="PERMANENT", name=name, exp_lower_bound=begins))
    for amount in (0, 999, 1_000, 1_200, 1_800, 6_000):
        set_experience(UserFactory.create(), permanent_experience=amount)
    return list(Badge.objects.filter(track="PERMANENT").order_by("exp_lower_bound"))


def test_a_badge_that_begins_later(admin: AdminClient, badges: list[Badge]) -> None:
    page = admin.enter(colleague("finance"), f"/admin/rewards/badge/{badges[1].pk}/change/")
    page.locator("[name=exp_lower_bound]").fill("1500")

    _save(page)

    wearing = page.get_by_label("Users per badge").get_by_role("row")
    expect(wearing).to_have_text(
        ["BadgeFromToBeforeAfter", "Bronze01,50024", "Silver1,5005,00031", "Gold5,000no end11"]
    )
    moving = page.get_by_label("Changes", exact=True).get_by_role("row").last
    expect(moving).to_contain_text("2SilverBronze")
    admin.picture("badge-preview")
    _ask(page, "operations")
    assert Badge.objects.get(pk=badges[0].pk).exp_upper_bound == 1_500
