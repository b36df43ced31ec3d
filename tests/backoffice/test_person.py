"""A person's page: what support needs to see of one user, in a fixed number of statements."""

import random
import re
import secrets
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from backoffice import person
from backoffice.person import person_of
from checkin.services import checkins
from credits.models import CreditEntry
from credits.services import adjustments, entries
from payments.models import Clawback, Customer, Payout, StripeEvent, Subscription
from relay.models import RelayTransaction
from rewards.models import BadgeTrack, ModifierType
from rewards.services import experience, modifiers
from tests.backoffice.conftest import mined
from tests.credits.allowances import set_allowance
from tests.credits.holding import place_hold
from tests.database import rewrite, tamper
from tests.earnings.ad_networks import set_up
from tests.factories import UserFactory, make
from tests.portal.history_rows import earned, relayed
from tests.staff import member
from users.models import AccountDeletion, ProfileCard, SignInSession, User

pytestmark = pytest.mark.django_db


@pytest.fixture
def user(db: None) -> User:
    return UserFactory.create()


def page_of(staff: Client, user: User) -> str:
    response = staff.get(f"/admin/users/user/{user.pk}/change/")
    assert response.status_code == 200
    return response.content.decode()


def section_of(page: str, name: str) -> str:
    """Return the text of a section, without its tags."""
    [section] = re.findall(rf'<section aria-label="{name}">(.*?)</section>', page, re.DOTALL)
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", section))


def figure_of(page: str, title: str) -> tuple[str, str]:
    """Return the value of the card of that title, and its second line."""
    value = r'<span class="value"[^>]*>(.*?)</span>'
    pattern = rf'<span class="title">{title}</span>\s*{value}<span class="detail">(.*?)</span>'
    [(shown, detail)] = re.findall(pattern, page)
    return shown, detail


def test_a_new_users_page_reports_empty_sections(staff: Client, user: User) -> None:
    page = page_of(staff, user)
    for words in ("Never subscribed.", "Never signed in.", "No modifier is active.", "not subscribed"):
        assert words in page


def test_the_page_begins_with_the_users_identity_and_a_clean_status(staff: Client, user: User) -> None:
    ProfileCard.objects.create(user=user, name="ada", refreshed_at=timezone.now())
    page = page_of(staff, user)
    who = section_of(page, "Person")
    assert f"ada#{str(user.profile_address)[2:6]}" in who
    assert str(user.profile_address) in who
    assert "Nothing is wrong with this account." in section_of(page, "Problems")
    later = [page.index(mark) for mark in ("data-staff-actions", 'aria-label="Credits"') if mark in page]
    assert page.index("Problems") < min(later)


def _owe(user: User) -> None:
    entries.adjust(user=user, credits=-7, key=secrets.token_hex(8), actor=None, reason="clawed back")


def _fail(user: User) -> None:
    relayed(user, 1)
    RelayTransaction.objects.update(
        status="Failed", failure_code="reverted", failure_detail="It was <refused>."
    )


def _leave_unpaid(user: User) -> None:
    make(Subscription, user=user, status=Subscription.Status.PAST_DUE)


def _hold(user: User) -> None:
    network = set_up("tapjoy", per_event_cap=1)
    network.send(network.reward(user, amount="12345"))


def _ask(user: User) -> None:
    adjustments.request(
        user=user, credits=1_000_000, key=secrets.token_hex(8), actor=member("support"), reason="a lost offer"
    )


def _leave(user: User) -> None:
    AccountDeletion.objects.create(user=user, requested_at=timezone.now())


def _close(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def _break_an_event(user: User) -> None:
    Customer.objects.create(user=user, stripe_customer_id="cus_1")
    row = make(StripeEvent)
    StripeEvent.objects.filter(pk=row.pk).update(
        status="failed", outcome="", processed_at=None, object_id="cus_1", type="customer.updated"
    )


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        (_owe, "Owes 7 credits"),
        (_fail, "The newest call did not succeed: It was &lt;refused&gt;."),
        (_leave_unpaid, "Subscription past due"),
        (_hold, "12,345 credits of tapjoy wait beyond a cap."),
        (_ask, "waits for a second person: a lost offer"),
        (_leave, "Asked for deletion on"),
        (_close, "this person cannot sign in"),
        (_break_an_event, "A Stripe event fails: customer.updated."),
    ],
)
def test_problems_are_listed_first(
    staff: Client, user: User, happens: Callable[[User], None], said: str
) -> None:
    happens(user)
    wrong = section_of(page_of(staff, User.objects.get(pk=user.pk)), "Problems")
    assert said in wrong
    assert "Nothing is wrong" not in wrong


def test_staff_members_have_no_user_page(staff: Client) -> None:
    colleague = UserFactory.create(profile_address=None, is_staff=True)
    assert "Never subscribed." not in page_of(staff, colleague)


def test_the_page_shows_credits_badges_and_the_entries_behind_them(staff: Client, user: User) -> None:
    earned(user, 50)
    relayed(user, 3)
    entries.adjust(user=user, credits=1_000, key=secrets.token_hex(8), actor=None, reason="sorry <b>")
    place_hold(user=user, credits=7, key=secrets.token_hex(8))
    experience.gain(user=user, track=BadgeTrack.PERMANENT, base=3_000, key=secrets.token_hex(8), cause="TEST")
    given = modifiers.grant(
        user=user,
        modifier_type=ModifierType.BONUS_SURVEYS_CREDITS,
        value=Decimal("0.25"),
        minutes=60,
        key=secrets.token_hex(8),
        reason="a gift",
    )
    begin = timezone.now()
    set_allowance(user=user, credits=4_321, starts_at=begin, ends_at=begin + timedelta(days=9), renews=True)
    checkins.execute(user=user, now=timezone.now(), idempotency_key="")
    page = page_of(staff, user)
    shown = person_of(user=user, now=timezone.now())
    assert f'id="balance">{shown.account.balance:,}<' in page
    assert f'id="available">{shown.account.available:,}<' in page
    assert figure_of(page, "Held") == ("7", "for calls that are not settled, and undone purchases")
    assert figure_of(page, "Allowance") == ("4,321", f"resets {begin + timedelta(days=9):%Y-%m-%d %H:%M} UTC")
    assert "sorry &lt;b&gt;" in page
    assert "a gift" in page
    assert f'href="/admin/rewards/modifier/{given.pk}/change/"' in page
    assert shown.badges[0].badge.exp_lower_bound == 1_000
    assert "0.5" in f"{shown.badges[0].progress:.4f}"
    assert shown.balance_line is not None
    assert shown.spent_by_day is not None
    assert shown.spent_by_day.rows[-1] == (f"{timezone.now():%d %b}", [3])
    assert len(shown.calls) == 3
    assert len(shown.check_ins) == 1


def test_hashes_link_to_a_configured_explorer(staff: Client, user: User, settings: Settings) -> None:
    relayed(user, 1)
    row = RelayTransaction.objects.get()
    mined(row, at=timezone.now(), gas=1, price_wei=1)
    settings.EXPLORER_URL = "https://explorer.example"
    assert f'href="https://explorer.example/tx/{row.transaction_hash}"' in page_of(staff, user)
    settings.EXPLORER_URL = ""
    assert "explorer.example" not in page_of(staff, user)


def test_a_payout_shows_its_clawback(staff: Client, user: User) -> None:
    payout, taken = make(Payout), [random.randint(1_000, 5_000) for _ in range(2)]
    money = {
        "amount_minor": 67_890,
        "tax_minor": 10,
        "other_minor": 1,
        "refunded_minor": 2,
        "disputed_minor": 3,
    }
    rewrite(Payout.objects.filter(pk=payout.pk), credits=12_345, **money)
    tamper("UPDATE payments_payout SET user_id = %s WHERE id = %s", user.pk, payout.pk)
    for amount, clawback in zip(taken, (make(Clawback), make(Clawback)), strict=True):
        rewrite(
            Clawback.objects.filter(pk=clawback.pk), payout=payout, credits=amount, entry=make(CreditEntry)
        )
    make(Clawback)
    section = section_of(page_of(staff, user), "Subscription")
    currency = payout.currency.upper()
    assert f"679.01 {currency} 0.05 {currency} 12,345 {sum(taken):,} " in section


def test_a_session_is_shown_by_its_controller_in_its_own_section(staff: Client, user: User) -> None:
    mine, of_another = make(SignInSession), make(SignInSession)
    SignInSession.objects.filter(pk=mine.pk).update(user=user)
    section = section_of(page_of(staff, user), "Sessions")
    assert mine.controller_address[:13] in section
    assert of_another.controller_address[:13] not in section


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("sk_live_x", "https://dashboard.stripe.com/customers/cus_1"),
        ("sk_test_x", "https://dashboard.stripe.com/test/customers/cus_1"),
    ],
)
def test_stripe_ids_lead_to_the_dashboard_of_their_mode(settings: Settings, key: str, expected: str) -> None:
    settings.STRIPE_SECRET_KEY, settings.STRIPE_API_BASE = key, "https://api.stripe.com"
    assert person.stripe_page("customers", "cus_1") == expected
    settings.STRIPE_API_BASE = "http://127.0.0.1:1"
    assert person.stripe_page("customers", "cus_1") == ""


def test_the_page_costs_the_same_whatever_happened(staff: Client, user: User) -> None:
    Customer.objects.create(user=user, stripe_customer_id="cus_1")
    counts = []
    for length in (1, 60):
        earned(user, length)
        relayed(user, length)
        for row in RelayTransaction.objects.filter(attempts=None):
            mined(row, at=timezone.now(), gas=1, price_wei=1)
        with CaptureQueriesContext(connection) as statements:
            page_of(staff, user)
        counts.append(len(statements))
    assert counts[0] == counts[1]


def test_the_page_shows_sessions_once_and_what_each_call_did(staff: Client, user: User) -> None:
    relayed(user, 2)
    session = make(SignInSession, user=user)
    page = page_of(staff, user)
    assert page.count(reverse("admin:users_signinsession_change", args=[session.pk])) == 1
    assert page.count("data-deeds=") == 2
