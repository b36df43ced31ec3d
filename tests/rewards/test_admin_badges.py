"""Badges in the admin: shown what a change does before it is made, through the service, with a trace."""

import random
import secrets
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from gateway.staff.audit import details_of
from gateway.staff.models import ApprovalRequest
from rewards.models import TERMS, Badge, BadgeTrack, Modifier, Progress
from tests.factories import UserFactory
from tests.rewards.rows import set_experience
from tests.staff import address_of, approve, browser_of, confirm, confirmed, member, messages_of, saved
from users.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("short_sidebar")]
BADGES = "/admin/rewards/badge/"


@pytest.fixture
def finance() -> Client:
    return browser_of(member("finance"))


def second(track: str = BadgeTrack.PERMANENT) -> Badge:
    return Badge.objects.filter(track=track).order_by("exp_lower_bound")[1]


def page_of(badge: Badge, page: str = "change") -> str:
    return f"{BADGES}{badge.pk}/{page}/"


def terms_of(badge: Badge, **changes: object) -> dict[str, Any]:
    names = ("name", "exp_lower_bound", *TERMS)
    return {name: getattr(badge, name) for name in names} | changes


def rows() -> list[Any]:
    return list(Badge.objects.order_by("pk").values())


def experienced(amount: int) -> None:
    set_experience(UserFactory.create(), permanent_experience=amount)


def test_a_change_is_shown_with_its_effect_and_made_when_confirmed(finance: Client) -> None:
    badge, before = second(), rows()
    experienced(badge.exp_lower_bound)
    body = terms_of(badge, exp_lower_bound=badge.exp_lower_bound + 1, credits_back_percent="0.0700")
    preview = finance.post(page_of(badge), body)
    page = preview.content.decode()
    assert rows() == before
    assert not LogEntry.objects.exists()
    [movement] = preview.context["preview"].movements
    assert (movement.users, movement.before.name) == (1, badge.name)
    assert movement.after.exp_upper_bound == badge.exp_lower_bound + 1
    assert f"<td>{badge.name}</td><td>{movement.after.name}</td>" in page
    assert "is saved" in saved(finance, page_of(badge), body, role="operations")
    badge.refresh_from_db()
    assert str(badge.credits_back_percent) == "0.0700"
    lowest = Badge.objects.get(track=badge.track, exp_lower_bound=0)
    assert lowest.exp_upper_bound == badge.exp_lower_bound == body["exp_lower_bound"]
    changes = details_of(LogEntry.objects.latest("pk"))["changes"]
    assert changes["exp_lower_bound"] == [str(badge.exp_lower_bound - 1), str(badge.exp_lower_bound)]
    assert changes["credits_back_percent"][1] == "0.0700"


def test_the_confirmation_page_counts_users_per_level_when_a_bound_moves(finance: Client) -> None:
    badge = second()
    begins, ends = badge.exp_lower_bound, badge.exp_upper_bound
    assert ends is not None
    lowest = Badge.objects.get(track=badge.track, exp_lower_bound=0)
    for amount, people in ((0, 2), (begins, 3), (begins + 5, 4), (ends, 1)):
        for _ in range(people):
            experienced(amount)
    page = finance.post(page_of(badge), terms_of(badge, exp_lower_bound=begins + 5)).content.decode()
    for name, bounds, before, after in (
        (lowest.name, (0, begins + 5), 2, 2 + 3),
        (badge.name, (begins + 5, ends), 3 + 4, 4),
    ):
        numbers = "".join(f'<td class="number">{number:,}</td>' for number in (*bounds, before, after))
        assert f"<tr><td>{name}</td>{numbers}</tr>" in page
    assert f'<tr><td class="number">3</td><td>{badge.name}</td><td>{lowest.name}</td>' in page
    assert "Nobody" not in page


def test_a_new_badge_is_inserted_into_its_levels(finance: Client) -> None:
    below = second(BadgeTrack.SUBSCRIBER)
    begins = below.exp_lower_bound + 1
    name = secrets.token_hex(4)
    body = terms_of(Badge(), name=name, exp_lower_bound=begins, track="SUBSCRIBER")
    saved(finance, f"{BADGES}add/", body, role="operations")
    made, end = Badge.objects.get(name=name), below.exp_upper_bound
    assert (made.track, made.exp_lower_bound, made.exp_upper_bound) == ("SUBSCRIBER", begins, end)
    below.refresh_from_db()
    assert below.exp_upper_bound == begins


def test_the_form_refuses_invalid_levels(finance: Client) -> None:
    badge, before = second(), rows()
    for field, value in (
        ("exp_lower_bound", 0),
        ("exp_lower_bound", -1),
        ("credits_back_percent", "1.5"),
        ("exp_growth_rate", "0"),
        ("bonus_creds_surveys", "11"),
        ("acceptable_credit_debt", -1),
    ):
        for extra in ({}, {"_confirmed": "1"}):
            response = finance.post(page_of(badge), {**terms_of(badge, **{field: value}), **extra})
            assert response.context["adminform"].errors, field
    assert rows() == before
    assert not LogEntry.objects.exists()


def test_a_removal_is_shown_with_its_effect_and_made_when_confirmed(finance: Client) -> None:
    badge = second()
    Badge.objects.filter(pk=badge.pk).update(name="to go")
    experienced(badge.exp_lower_bound)
    page = finance.get(address_of("rewards_badge", "remove", badge)).content.decode()
    assert '<tr><td class="number">1</td><td>to go</td>' in page
    confirm(finance, "rewards_badge", "remove", badge)
    assert Badge.objects.filter(pk=badge.pk).exists()
    assert "It is removed" in approve("operations")
    assert not Badge.objects.filter(pk=badge.pk).exists()
    assert Badge.objects.get(track=badge.track, exp_lower_bound=0).exp_upper_bound == badge.exp_upper_bound


def test_the_lowest_badge_stays(finance: Client) -> None:
    lowest, before = Badge.objects.get(track="PERMANENT", exp_lower_bound=0), rows()
    assert "does not apply" in messages_of(confirm(finance, "rewards_badge", "remove", lowest))
    assert finance.post(page_of(lowest, "delete"), {"post": "yes"}).status_code == 403
    assert rows() == before
    listed = finance.get(BADGES)
    assert "delete_selected" not in listed.content.decode()


@pytest.mark.parametrize("role", ["support", "operations"])
def test_other_roles_view_and_cannot_change(role: str) -> None:
    other, badge, before = browser_of(member(role)), second(), rows()
    assert other.get(page_of(badge)).status_code == 200
    for extra in ({}, {"_confirmed": "1"}):
        assert other.post(page_of(badge), {**terms_of(badge, name="mine"), **extra}).status_code == 403
        assert other.post(f"{BADGES}add/", {**terms_of(badge, name="mine"), **extra}).status_code == 403
    assert other.post(page_of(badge, "delete"), {"post": "yes"}).status_code == 403
    assert rows() == before


def test_a_modifier_above_the_cap_is_listed_and_shown_with_the_cap(finance: Client) -> None:
    given = Modifier.objects.create(
        user=UserFactory.create(),
        modifier_type="BONUS_SURVEYS_CREDITS",
        value="10",
        key=secrets.token_hex(8),
        expires_at="2999-01-01T00:00Z",
    )
    for page in ("", f"{given.pk}/change/"):
        shown = finance.get(f"/admin/rewards/modifier/{page}").content.decode()
        assert "+100 %" in shown
        assert "1,000 %" not in shown


def test_progress_shows_the_badge_of_each_track(finance: Client) -> None:
    user: User = UserFactory.create()
    set_experience(user, permanent_experience=3_000, subscriber_experience=5_000)
    row = Progress.objects.get(user=user)
    reached = [
        Badge.objects.filter(track=track, exp_lower_bound__lte=total).latest("exp_lower_bound").name
        for track, total in (
            (BadgeTrack.PERMANENT, row.permanent_experience),
            (BadgeTrack.SUBSCRIBER, row.subscriber_experience),
        )
    ]
    assert reached[0] != Badge.objects.get(track=BadgeTrack.PERMANENT, exp_lower_bound=0).name
    for page in ("", f"{row.pk}/change/"):
        shown = finance.get(f"/admin/rewards/progress/{page}").content.decode()
        assert [name for name in reached if name in shown] == reached


def test_modifiers_and_experience_are_read(finance: Client) -> None:
    user: User = UserFactory.create()
    given = Modifier.objects.create(
        user=user,
        modifier_type="BONUS_SURVEYS_CREDITS",
        value=f"0.{random.randint(1000, 9999)}",
        key=secrets.token_hex(8),
        reason="a gift",
        expires_at="2999-01-01T00:00Z",
    )
    listed = finance.get("/admin/rewards/modifier/", {"q": str(user.profile_address)})
    assert [row.pk for row in listed.context["cl"].result_list] == [given.pk]
    for page in ("modifier", "experienceentry"):
        assert finance.get(f"/admin/rewards/{page}/add/").status_code == 403
    assert finance.post(f"/admin/rewards/modifier/{given.pk}/change/", {"value": "9"}).status_code == 403
    assert finance.post(f"/admin/rewards/modifier/{given.pk}/delete/", {"post": "yes"}).status_code == 403


def test_no_badge_promises_more_attempts_than_the_operator_gives(finance: Client, settings: Any) -> None:
    settings.CHECKIN_MAX_DAILY_ATTEMPTS = most = random.randint(2, 9)
    badge, before = second(), rows()
    refused = finance.post(page_of(badge), terms_of(badge, bonus_daily_check_in_attempts=most))
    assert f"less than or equal to {most - 1}" in refused.content.decode()
    assert rows() == before
    assert f"at most {most} a day" in finance.get(page_of(badge)).content.decode()
    body = terms_of(badge, bonus_daily_check_in_attempts=most - 1)
    saved(finance, page_of(badge), body, role="operations")
    assert second().bonus_daily_check_in_attempts == most - 1


def test_a_change_is_refused_after_a_concurrent_change_or_above_a_ceiling(
    finance: Client, settings: Any
) -> None:
    badge, settings.CEILING_BADGE_DEBT = second(), 500
    refused = finance.post(page_of(badge), terms_of(badge, acceptable_credit_debt=501))
    assert refused.context["adminform"].form.non_field_errors() == [
        "A badge's debt limit is at most 500 credits."
    ]
    assert 'value="501"' in refused.content.decode()
    assert not ApprovalRequest.objects.exists()
    confirmed(finance, page_of(badge), terms_of(badge, acceptable_credit_debt=500))
    Badge.objects.filter(pk=badge.pk).update(acceptable_credit_debt=7)
    assert "The request is outdated" in approve("operations")
    assert second().acceptable_credit_debt == 7
