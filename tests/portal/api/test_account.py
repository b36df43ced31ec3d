"""The account in short, and what anybody may know of the service."""

import secrets
from datetime import timedelta

import pytest
from django.conf import settings
from rest_framework.test import APIClient

from checkin.models import DropTable
from credits.models import EntrySource
from credits.services import entries
from gateway.chain.config import get_chain
from payments.models import Payout, Subscription
from rewards.models import Badge, BadgeTrack, Progress
from tests.credits.holding import place_hold
from tests.factories import make
from tests.fakes.profiles import Profile
from tests.portal.api.test_dashboard import create_subscription, subscribe
from tests.users.auth_client import signed_in
from users.models import User

pytestmark = pytest.mark.django_db


def test_the_account_shows_the_held_part_of_the_balance(client: APIClient, profile: Profile) -> None:
    access = signed_in(profile).access
    user = User.objects.get(profile_address=profile.profile_address)
    balance, held = 1_000 + secrets.randbelow(1_000), 1 + secrets.randbelow(999)
    entries.grant(user=user, credits=balance, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    Progress.objects.filter(user=user).update(cashback_remainder=1_234)
    place_hold(user=user, credits=held, key=secrets.token_hex(8), debt_limit=0)

    response = client.get("/api/user/account", HTTP_AUTHORIZATION=f"Bearer {access}")

    assert response.json() == {
        "profileAddress": profile.profile_address,
        "balance": balance,
        "held": held,
        "available": balance - held,
        "debtLimit": 0,
        "totalQuota": 0,
        "resetDate": -1,
        "permanentBadge": Badge.objects.get(track=BadgeTrack.PERMANENT, exp_lower_bound=0).name,
        "subscriberBadge": Badge.objects.get(track=BadgeTrack.SUBSCRIBER, exp_lower_bound=0).name,
        "subscriptionStatus": None,
        "subscriptionAmountFrom": -1,
        "cashbackRemainder": 0.1234,
        "checkInDropsLimitedBy": "nothing",
        "checkInDropsHint": "",
    }
    assert response["Cache-Control"] == "no-store"


def test_the_account_shows_the_smaller_debt_limit(client: APIClient, profile: Profile) -> None:
    access = signed_in(profile).access
    user = User.objects.get(profile_address=profile.profile_address)
    of_badge = 100 + secrets.randbelow(100)
    Badge.objects.filter(track=BadgeTrack.PERMANENT).update(acceptable_credit_debt=of_badge)
    for earned, limit in ((0, 0), (7, 7), (1_000, of_badge)):
        if earned:
            entries.grant(user=user, credits=earned, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
        response = client.get("/api/user/account", HTTP_AUTHORIZATION=f"Bearer {access}")
        assert response.json()["debtLimit"] == limit


def test_the_served_chain_is_public(client: APIClient) -> None:
    response = client.get("/api/service")

    assert response.status_code == 200
    assert response.json()["chainId"] == get_chain().id
    assert response.json()["relayerUrl"] == f"{settings.PUBLIC_URL}/api/lsp15"


@pytest.mark.parametrize(
    ("amount_minor", "tax_minor", "counts_later"),
    [(2_550, 0, False), (2_450, 100, False), (2_550, 510, False), (1_000, 0, True)],
)
def test_the_account_shows_when_a_new_amount_is_charged(
    client: APIClient, profile: Profile, amount_minor: int, tax_minor: int, counts_later: bool
) -> None:
    access = signed_in(profile).access
    user = User.objects.get(profile_address=profile.profile_address)
    create_subscription(user, amount_minor=2_550)
    subscribe(user)
    subscription = Subscription.objects.get()
    make(
        Payout,
        user=user,
        subscription=subscription,
        amount_minor=amount_minor,
        tax_minor=tax_minor,
        currency="usd",
        period_start=subscription.current_period_start - timedelta(minutes=1),
        period_end=subscription.current_period_end,
    )

    result = client.get("/api/user/account", HTTP_AUTHORIZATION=f"Bearer {access}").json()

    starts = int(subscription.current_period_end.timestamp())
    assert result["subscriptionAmountFrom"] == (starts if counts_later else -1)


def test_the_account_explains_zeros_in_the_drop_table(client: APIClient, profile: Profile) -> None:
    access = signed_in(profile).access

    def limited_by() -> tuple[str, bool]:
        body = client.get("/api/user/account", HTTP_AUTHORIZATION=f"Bearer {access}").json()
        return body["checkInDropsLimitedBy"], bool(body["checkInDropsHint"])

    assert limited_by() == ("nothing-earned", True)
    user = User.objects.get(profile_address=profile.profile_address)
    entries.grant(user=user, credits=5, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    assert limited_by() == ("nothing", False)
    DropTable.objects.filter(badge__track=BadgeTrack.PERMANENT).update(badge=None)
    assert limited_by() == ("no-drop-table", True)
