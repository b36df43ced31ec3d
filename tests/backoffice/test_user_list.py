"""The list of users shows whom a row is about: name, credits, plan, and when the service last saw them."""

import random
import re
import secrets
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from credits.models import CreditAccount
from payments.models import Subscription
from relay.models import RelayTransaction
from tests.factories import UserFactory, make
from tests.staff import browser_of, member
from users.models import ProfileCard, SignInSession, User

pytestmark = pytest.mark.django_db
_SEEN_AT = datetime(2026, 3, random.randint(10, 28), 12, tzinfo=UTC)


def _cells(user: User) -> list[str]:
    page = browser_of(member("support")).get(
        "/admin/users/user/", {"q": user.profile_address or user.username}
    )
    [row] = re.findall(r"<tr><td.*?</tr>", page.content.decode(), re.DOTALL)
    cells = re.findall(r'<t[dh] class="field-(?!date_joined).*?</t[dh]>', row, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in cells]


def _short(user: User) -> str:
    address = str(user.profile_address)
    return f"{address[:8]}…{address[-6:]}"


def test_a_row_names_the_person_with_credits_plan_and_last_visit() -> None:
    user = UserFactory.create()
    name, balance, held = secrets.token_hex(4), random.randint(10_000, 99_999), random.randint(1, 999)
    ProfileCard.objects.create(user=user, name=name, refreshed_at=_SEEN_AT)
    make(CreditAccount, user=user, balance=balance, held=held)
    for age in (4, 0, 3):
        make(SignInSession, user=user, refreshed_at=_SEEN_AT - timedelta(days=age))
    ended = make(Subscription, user=user, status="canceled", ended_at=_SEEN_AT)
    live = make(
        Subscription,
        user=user,
        customer=ended.customer,
        status="past_due",
        amount_minor=1_250,
        currency="eur",
    )

    assert _cells(user) == [
        f"{name}#{str(user.profile_address)[2:6]}",
        f"{balance - held:,}",
        "12.50 EUR a month Last payment failed",
        f"{_SEEN_AT:%Y-%m-%d %H:%M:%S} UTC",
    ]

    Subscription.objects.filter(pk=live.pk).update(status="active")
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert _cells(user)[0::2] == [f"{name}#{str(user.profile_address)[2:6]} Closed", "12.50 EUR a month"]


def test_a_caller_without_a_session_was_last_seen_at_the_newest_call_or_log_in() -> None:
    user = UserFactory.create()
    assert _cells(user) == [_short(user), "-", "-", "never"]

    calls = [make(RelayTransaction, user=user) for _ in range(3)]
    for call, age in zip(calls, (9, 5, 2), strict=True):
        RelayTransaction.objects.filter(pk=call.pk).update(created_at=_SEEN_AT - timedelta(days=age))
    assert _cells(user)[3] == f"{_SEEN_AT - timedelta(days=2):%Y-%m-%d %H:%M:%S} UTC"

    User.objects.filter(pk=user.pk).update(last_login=_SEEN_AT)
    assert _cells(user)[3] == f"{_SEEN_AT:%Y-%m-%d %H:%M:%S} UTC"


def test_a_person_on_the_staff_has_the_name_of_the_account() -> None:
    colleague = member("finance")

    assert _cells(colleague)[0] == f"{colleague.username} Staff"


def test_of_two_plans_the_list_shows_the_active_one() -> None:
    user = UserFactory.create()
    unpaid = make(Subscription, user=user, status="incomplete", amount_minor=900, currency="usd")
    make(
        Subscription, user=user, customer=unpaid.customer, status="active", amount_minor=2_100, currency="usd"
    )

    assert _cells(user)[2] == "21.00 USD a month"


def test_the_list_reads_no_pictures_and_counts_no_sessions() -> None:
    client = browser_of(member("support"))
    ProfileCard.objects.create(user=UserFactory.create(), name="Ada", refreshed_at=_SEEN_AT)

    with CaptureQueriesContext(connection) as captured:
        client.get("/admin/users/user/")

    queries = [query["sql"] for query in captured]
    assert [sql for sql in queries if '"picture"' in sql] == []
    counting = [sql for sql in queries if "COUNT(" in sql and "users_user" in sql]
    assert counting
    assert [sql for sql in counting if "users_signinsession" in sql] == []
