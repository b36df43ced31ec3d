"""The account in short, and what anybody may know of the service."""

import secrets

import pytest
from django.conf import settings
from rest_framework.test import APIClient

from credits.models import EntrySource
from credits.services import entries, holds
from gateway.chain.config import get_chain
from rewards.models import Badge, BadgeTrack
from tests.fakes.profiles import Profile
from tests.users.auth_client import signed_in
from users.models import User

pytestmark = pytest.mark.django_db


def test_the_account_tells_what_is_held_of_the_balance(client: APIClient, profile: Profile) -> None:
    access = signed_in(profile).access
    user = User.objects.get(profile_address=profile.profile_address)
    balance, held = 1_000 + secrets.randbelow(1_000), 1 + secrets.randbelow(999)
    entries.grant(user=user, credits=balance, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    holds.hold(user=user, credits=held, key=secrets.token_hex(8), debt_limit=0)

    answer = client.get("/api/user/account", HTTP_AUTHORIZATION=f"Bearer {access}")

    assert answer.json() == {
        "profileAddress": profile.profile_address,
        "balance": balance,
        "held": held,
        "available": balance - held,
        "totalQuota": 0,
        "resetDate": -1,
        "permanentBadge": Badge.objects.get(track=BadgeTrack.PERMANENT, exp_lower_bound=0).name,
        "subscriberBadge": Badge.objects.get(track=BadgeTrack.SUBSCRIBER, exp_lower_bound=0).name,
        "subscriptionStatus": None,
    }
    assert answer["Cache-Control"] == "no-store"


def test_anybody_reads_which_chain_is_served(client: APIClient) -> None:
    answer = client.get("/api/service")

    assert answer.status_code == 200
    assert answer.json()["chainId"] == get_chain().id
    assert answer.json()["relayerUrl"] == f"{settings.PUBLIC_URL}/api/lsp15"
