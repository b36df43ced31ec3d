"""What staff do about credits: with a reason, by role, once; refused where the service refuses."""

import random
import secrets
import uuid
from datetime import timedelta
from decimal import Decimal

import pytest
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.urls import reverse
from django.utils import timezone

from credits.models import CreditEntry
from credits.queries import balance_of
from earnings.models import AdNetwork, Postback
from gateway.common.errors import NotFound
from gateway.staff.audit import details_of, sentence_of
from gateway.staff.models import ApprovalRequest
from rewards.models import Modifier, ModifierType
from rewards.queries import current_rewards
from rewards.services import modifiers
from tests.earnings.ad_networks import set_up
from tests.staff import address_of, approve, browser_of, confirm, everything, member, messages_of, prove
from users.models import User

pytestmark = pytest.mark.django_db
QUEUE = "gateway_admin_approvalrequest"
SUPPORT, FINANCE, OPERATIONS = {"support"}, {"finance"}, {"operations"}


@pytest.fixture
def small() -> int:
    """Return an amount that one person may move."""
    return random.randint(1, int(settings.APPROVAL_LIMITS["credits"]["actor"]))


@pytest.fixture
def large() -> int:
    """Return an amount that takes a second person."""
    return int(settings.APPROVAL_LIMITS["credits"]["actor"]) + random.randint(1, 10**6)


@pytest.mark.parametrize(("model", "sign"), [("users_user", 1), ("credits_creditaccount", -1)])
def test_a_small_adjustment_is_posted_at_once(
    user: User, small: int, funds: int, model: str, sign: int
) -> None:
    row = user if model == "users_user" else user.credit_account
    message = prove(model, "adjust_credits", row, roles=SUPPORT, credits=sign * small)
    assert f"{sign * small:+d} credits were posted" in message
    entry = CreditEntry.objects.latest("pk")
    assert (entry.amount, entry.source) == (sign * small, "STAFF_ADJUSTMENT")
    assert entry.actor is not None
    assert entry.reason
    assert balance_of(user).balance == funds + sign * small


def test_a_large_adjustment_waits_for_a_second_approver(user: User, large: int, funds: int) -> None:
    message = prove("users_user", "adjust_credits", user, roles=SUPPORT, credits=large)
    assert "waits for a second person" in message
    assert balance_of(user).balance == funds
    request = ApprovalRequest.objects.get()
    shown = browser_of(member("finance")).get(address_of(QUEUE, "approve", request)).content.decode()
    assert request.reason in shown
    assert f"balance: {funds:,} → {funds + large:,}" in shown
    message = approve("finance")
    assert f"{large:+d} credits were posted" in message
    assert balance_of(user).balance == funds + large
    assert CreditEntry.objects.latest("pk").actor == request.requested_by


def test_a_large_one_that_is_rejected_posts_nothing(user: User, large: int, funds: int) -> None:
    confirm(browser_of(member("support")), "users_user", "adjust_credits", user, credits=-large)
    assert "Nothing is done" in approve("finance", action="reject")
    assert balance_of(user).balance == funds
    assert "does not apply" in approve("finance")
    assert balance_of(user).balance == funds


def test_the_page_tells_the_requester_before_any_form_that_another_member_decides(
    user: User, large: int
) -> None:
    client = browser_of(member("superuser"))
    form = client.get(address_of("users_user", "adjust_credits", user)).content.decode()
    assert (
        "Larger amounts wait until a second person approves (finance). You cannot approve it yourself."
        in form
    )
    confirm(client, "users_user", "adjust_credits", user, credits=large)
    before, request = everything(), ApprovalRequest.objects.get()
    shown = client.get(reverse(f"admin:{QUEUE}_change", args=[request.pk])).content.decode()
    assert "This is your own request. Another member of staff, with another role, has to decide it." in shown
    assert address_of(QUEUE, "approve", request) not in shown
    for action in ("approve", "reject"):
        page = client.get(address_of(QUEUE, action, request)).content.decode()
        assert ("This is your own request." in page, 'name="reason"' in page) == (True, False)
        assert "Your own request" in messages_of(confirm(client, QUEUE, action, request))
    assert everything() == before


def test_an_amount_that_is_none_is_refused_at_the_form(user: User) -> None:
    client, before = browser_of(member("support")), everything()
    for nonsense in ("0", "", "1.5", "many", str(2**53), str(-(2**53))):
        response = confirm(client, "users_user", "adjust_credits", user, credits=nonsense)
        assert "credits" in response.context["form"].errors, nonsense  # type: ignore[attr-defined]
    assert everything() == before


def test_the_same_page_sent_with_another_amount_moves_nothing_more(user: User, small: int) -> None:
    client, token = browser_of(member("support")), uuid.uuid4()
    confirm(client, "users_user", "adjust_credits", user, credits=small, token=token)
    before = everything()
    confirm(client, "users_user", "adjust_credits", user, credits=-1, token=token)
    assert everything() == before


def test_staff_have_no_credits_to_adjust(db: None) -> None:
    person = member("finance")
    before = everything()
    response = confirm(browser_of(member("support")), "users_user", "adjust_credits", person, credits=1)
    assert "does not apply" in messages_of(response)
    assert everything() == before


def test_a_modifier_is_granted(user: User) -> None:
    value, minutes = Decimal(random.randint(1, 1_000)) / 10_000, random.randint(1, 10_000)
    results = {"modifier_type": "BONUS_CREDITS_BACK", "value": value, "minutes": minutes}
    prove("users_user", "grant_modifier", user, roles=SUPPORT, **results)
    given = Modifier.objects.get()
    assert (given.user, given.modifier_type, given.value) == (user, "BONUS_CREDITS_BACK", value)
    assert (given.expires_at - given.created_at).total_seconds() == 60 * minutes
    assert given.actor is not None
    assert given.reason


def test_a_modifier_out_of_range_is_refused_at_the_form(user: User) -> None:
    client, before = browser_of(member("support")), everything()
    right = {"modifier_type": "BONUS_CREDITS_BACK", "value": "0.5", "minutes": "5"}
    for wrong in ({"value": "0"}, {"value": "1.0001"}, {"minutes": "0"}, {"modifier_type": "EXPERIENCE"}):
        confirm(client, "users_user", "grant_modifier", user, **{**right, **wrong})
        assert everything() == before, wrong


def granted(user: User, *, minutes: int = 60) -> Modifier:
    return modifiers.grant(
        user=user,
        modifier_type=ModifierType.BONUS_SURVEYS_CREDITS,
        value=Decimal(10),
        minutes=minutes,
        key=secrets.token_hex(8),
        reason="a slip of the finger",
    )


def test_a_modifier_is_ended_before_its_time_and_the_log_keeps_when_it_would_have_ended(user: User) -> None:
    given, kept = granted(user), granted(user)
    message = prove("rewards_modifier", "end", given, roles=SUPPORT)
    assert message == f"{given}: It has ended."
    assert current_rewards(user=user, now=timezone.now()).modifiers == [kept]
    entry = LogEntry.objects.latest("pk")
    assert details_of(entry)["changes"] == {"expires_at": [str(given.expires_at), "now"]}
    assert entry.object_id == str(given.pk)


def test_its_page_describes_the_end_and_offers_it_only_while_active(user: User) -> None:
    client, given, expired = browser_of(member("support")), granted(user), granted(user)
    moment = timezone.now() - timedelta(seconds=1)
    Modifier.objects.filter(pk=expired.pk).update(created_at=moment - timedelta(hours=1), expires_at=moment)
    request = client.get(address_of("rewards_modifier", "end", given, expired))
    [(name, effect)] = request.context["effects"]
    assert name == str(given)
    assert effect.startswith(f"{user.profile_address} loses +100 % of Bonus Surveys Credits now")
    assert f"{given.expires_at:%Y-%m-%d %H:%M} UTC" in effect
    assert request.context["others"] == [(str(expired), "It does not apply.")]
    for row, is_offered in ((given, True), (expired, False)):
        page = client.get(reverse("admin:rewards_modifier_change", args=[row.pk])).content.decode()
        assert (address_of("rewards_modifier", "end", row) in page) is is_offered


def test_one_that_has_already_ended_is_skipped_and_reported(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = granted(user)
    modifiers.end(modifier_id=given.pk)
    # As of one that ends between the look at the row and its lock, or by a clock that is behind.
    monkeypatch.setattr("rewards.admin.clock.now", lambda: given.created_at)
    before = everything()
    response = confirm(browser_of(member("support")), "rewards_modifier", "end", given)
    assert "The modifier is not active. It has already ended." in messages_of(response)
    assert everything() == before
    entry = LogEntry.objects.get()
    assert sentence_of(entry) == "end refused"
    assert details_of(entry)["changes"] == {"outcome": ["", "modifier-ended"]}


def test_a_network_is_paused_and_resumed(user: User) -> None:
    network = set_up("tapjoy")
    prove("earnings_adnetwork", "pause", network.row, roles=OPERATIONS)
    assert not AdNetwork.objects.get().is_enabled
    with pytest.raises(NotFound):
        network.send(network.reward(user))
    prove("earnings_adnetwork", "resume", network.row, roles=OPERATIONS)
    assert network.send(network.reward(user)).status == 200


def test_a_weak_network_without_guards_is_not_resumed(db: None) -> None:
    network = set_up("cpx-research")
    AdNetwork.objects.update(is_enabled=False, hold_hours=0)
    before = everything()
    response = confirm(browser_of(member("operations")), "earnings_adnetwork", "resume", network.row)
    assert "The network cannot be enabled" in messages_of(response)
    assert messages_of(response).count("does not cover user, amount and id") == 1
    assert everything() == before
    entry = LogEntry.objects.get()
    assert sentence_of(entry) == "resume refused"
    assert details_of(entry)["changes"] == {"outcome": ["", "network-unguarded"]}


@pytest.mark.parametrize("action", ["release_early", "forfeit"])
def test_a_held_earning_is_decided_by_finance(user: User, action: str) -> None:
    network, before = set_up("cpx-research"), balance_of(user).available
    network.send(network.reward(user, amount="40"))
    held = Postback.objects.get()

    message = prove("earnings_postback", action, held, roles=FINANCE)

    assert {"release_early": "40 credits were posted.", "forfeit": "will not be posted."}[action] in message
    held.refresh_from_db()
    assert held.state == {"release_early": "AVAILABLE", "forfeit": "REFUSED"}[action]
    assert balance_of(user).available - before == {"release_early": 40, "forfeit": 0}[action]
    decided = everything()
    again = confirm(browser_of(member("finance")), "earnings_postback", action, held)
    assert "does not apply" in messages_of(again)
    assert everything() == decided


def test_a_users_page_offers_only_permitted_actions(user: User) -> None:
    for role, offered in (("support", {"adjust_credits", "grant_modifier"}), ("finance", set())):
        shown = (
            browser_of(member(role)).get(reverse("admin:users_user_change", args=[user.pk])).content.decode()
        )
        actions = {"adjust_credits", "grant_modifier", "revoke_sessions"}
        assert {name for name in actions if address_of("users_user", name, user) in shown} == offered
