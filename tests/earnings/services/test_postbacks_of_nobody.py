"""A signed earning that names no user leaves a row; staff, or a repeat that names its user, give it to a person."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import strip_tags

from credits.models import CreditEntry
from credits.queries import balance_of
from credits.services.reconciliation import find_differences
from earnings.errors import EarningDecided
from earnings.models import Postback, PostbackState
from earnings.queries import postback_counts
from earnings.services import unassigned
from tests.earnings.ad_networks import SLUGS, new_reward, set_up
from tests.factories import UserFactory
from tests.staff import approve, browser_of, confirm, member

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("slug", SLUGS)
@pytest.mark.parametrize("user", ["", "{user_id}", "player-7"])
def test_a_reward_for_an_unknown_user_leaves_a_row_and_no_credits(
    slug: str, user: str, caplog: pytest.LogCaptureFixture
) -> None:
    network = set_up(slug)
    reward = new_reward(at=timezone.now(), user=user, amount="40")

    results = {network.send(reward).status for _ in range(2)}

    assert results == {200}
    row = Postback.objects.get()
    assert (row.state, row.user_id, row.credits, int(row.amount)) == (PostbackState.UNASSIGNED, None, 0, 40)
    assert "names no user" in caplog.text
    assert postback_counts().unassigned == 1
    assert not CreditEntry.objects.exists()


def test_a_repeat_that_names_its_user_is_credited_once() -> None:
    user, network = UserFactory.create(), set_up("tapjoy")
    reward = network.reward(user, amount="40")
    network.send(new_reward(external_id=reward.external_id, amount="40", at=timezone.now()))

    for _ in range(2):
        network.send(reward)

    row = Postback.objects.get()
    assert (row.state, row.user, row.credits) == (PostbackState.AVAILABLE, user, 40)
    assert balance_of(user).available == 40
    assert find_differences() == []


def test_finance_assigns_it_to_a_user_alone_within_the_limits_and_with_approval_above() -> None:
    user, network = UserFactory.create(), set_up("tapjoy")
    finance = browser_of(member("finance"))
    for amount in ("40", "20000"):
        network.send(new_reward(amount=amount, at=timezone.now()))
    small, large = Postback.objects.order_by("pk")

    page = confirm(
        finance, "earnings_postback", "assign", small, profile_address=str(user.profile_address).lower()
    )
    assert "It is decided" in page.content.decode()
    assert balance_of(user).available == 40
    confirm(finance, "earnings_postback", "assign", large, profile_address=user.profile_address)
    assert balance_of(user).available == 40
    approve("operations")
    assert balance_of(user).available == 20_040
    with pytest.raises(EarningDecided):
        unassigned.assign(postback_id=small.pk, user=user)


def test_an_unknown_profile_is_refused_in_the_form() -> None:
    network = set_up("tapjoy")
    network.send(new_reward(at=timezone.now()))

    page = confirm(
        browser_of(member("finance")),
        "earnings_postback",
        "assign",
        Postback.objects.get(),
        profile_address="0x12",
    )

    assert "No profile with this address has signed in." in page.content.decode()
    assert Postback.objects.get().state == PostbackState.UNASSIGNED


def test_caps_apply_to_rewards_that_staff_assign() -> None:
    user, network = UserFactory.create(), set_up("tapjoy", per_event_cap=10)
    network.send(new_reward(amount="11", at=timezone.now()))

    row = unassigned.assign(postback_id=Postback.objects.get().pk, user=user)

    assert (row.state, row.hold_reason) == (PostbackState.HELD, "EVENT_CAP")
    assert balance_of(user).available == 0


def test_a_reversal_without_a_user_is_decided_with_its_credit() -> None:
    user, network = UserFactory.create(), set_up("tapjoy")
    reward = new_reward(amount="100", at=timezone.now())
    network.send(reward)
    for _ in range(2):
        network.send(
            new_reward(external_id=reward.external_id, amount="30", at=timezone.now(), is_reversal=True)
        )
    assert Postback.objects.count() == 2

    unassigned.assign(postback_id=Postback.objects.get(kind="CREDIT").pk, user=user)

    assert balance_of(user).available == 70
    assert find_differences() == []


def test_a_reversal_without_a_user_takes_back_credits_once_it_is_assigned() -> None:
    user, network = UserFactory.create(), set_up("tapjoy")
    reward = network.reward(user, amount="100")
    network.send(reward)
    network.send(new_reward(external_id=reward.external_id, amount="30", at=timezone.now(), is_reversal=True))

    unassigned.assign(postback_id=Postback.objects.get(kind="REVERSAL").pk, user=user)

    assert balance_of(user).available == 70


def test_a_negative_amount_under_a_new_id_is_a_finding_until_staff_close_it() -> None:
    user, network = UserFactory.create(), set_up("tapjoy")
    network.send(network.reward(user, amount="100"))
    network.send(network.reward(user, amount="30", is_reversal=True))
    row = Postback.objects.get(kind="REVERSAL")
    assert (row.state, balance_of(user).available) == (PostbackState.RECEIVED, 100)
    assert postback_counts().unmatched_reversals == 0
    Postback.objects.filter(pk=row.pk).update(received_at=timezone.now() - timedelta(hours=25))
    assert postback_counts().unmatched_reversals == 1

    confirm(browser_of(member("finance")), "earnings_postback", "close", row)

    row.refresh_from_db()
    assert (row.state, row.refused_because) == (PostbackState.REFUSED, "CLOSED")
    assert postback_counts().unmatched_reversals == 0
    assert balance_of(user).available == 100
    with pytest.raises(EarningDecided):
        unassigned.close(postback_id=row.pk)


def test_the_users_page_shows_the_number_of_reversed_earnings() -> None:
    user, network = UserFactory.create(), set_up("tapjoy")
    for place in range(10):
        reward = network.reward(user, amount="10")
        network.send(reward)
        if place < 8:
            network.send(network.reward(user, external_id=reward.external_id, amount="10", is_reversal=True))

    page = browser_of(member("support")).get(reverse("admin:users_user_change", args=[user.pk]), follow=True)

    text = strip_tags(page.content.decode())
    assert "8 of 10 earnings of 90 days were taken back. New ones are held for 14 days." in text
