"""The list of users shows whom a row is about: name, credits, plan, and when the service last saw them."""

import random
import re
import secrets
from datetime import UTC, datetime, timedelta

import pytest

from credits.models import CreditAccount
from payments.models import Subscription
from relay.models import RelayTransaction
from tests.factories import UserFactory, make
from tests.staff import browser_of, member
from users.models import ProfileCard, SignInSession, User

pytestmark = pytest.mark.django_db


def _cells(user: User) -> list[str]:
    page = browser_of(member("support")).get(
        "/admin/users/user/", {"q": user.profile_address or user.username}
    )
    [row] = re.findall(r"<tr><td.*?</tr>", page.content.decode(), re.DOTALL)
    cells = re.findall(r'<t[dh] class="field-(?!date_joined).*?</t[dh]>', row, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in cells]


def test_a_row_names_the_person_with_credits_plan_and_last_visit() -> None:
    user = UserFactory.create()
    seen_at = datetime(2026, 3, random.randint(1, 28), 12, tzinfo=UTC)
    name, balance, held = secrets.token_hex(4), random.randint(10_000, 99_999), random.randint(1, 999)
    ProfileCard.objects.create(user=user, name=name, refreshed_at=seen_at)
    make(CreditAccount, user=user, balance=balance, held=held)
    for age in (0, 3):
        make(SignInSession, user=user, refreshed_at=seen_at - timedelta(days=age))
    live = make(Subscription, user=user, status="past_due", amount_minor=1_250, currency="eur")
    make(Subscription, user=user, customer=live.customer, status="canceled", ended_at=seen_at)

    assert _cells(user) == [
        f"{name}#{str(user.profile_address)[2:6]}",
        f"{balance - held:,}",
        "12.50 EUR a month Last payment failed",
        f"{seen_at:%Y-%m-%d %H:%M:%S} UTC",
    ]

    Subscription.objects.filter(pk=live.pk).update(status="active")
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert _cells(user)[0::2] == [f"{name}#{str(user.profile_address)[2:6]} Closed", "12.50 EUR a month"]


def test_a_caller_without_a_session_was_last_seen_at_the_newest_call() -> None:
    user = UserFactory.create()
    assert _cells(user)[2:] == ["-", "never"]
    call = make(RelayTransaction, user=user)
    assert _cells(user)[3] == f"{call.created_at:%Y-%m-%d %H:%M:%S} UTC"
