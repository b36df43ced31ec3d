"""What a change does is shown before it is saved, and saved by one more click."""

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from gateway.staff import approvals
from gateway.staff.models import ApprovalRequest
from rewards.models import Badge
from rewards.services import levels
from tests.browser.accessibility import violations
from tests.browser.admin_client import AdminClient, colleague, follow
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
