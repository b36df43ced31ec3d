"""POST /api/relay/quota on the wire."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from devstack.world.profiles import Profile
from tests.credits.allowances import set_allowance
from tests.relay.api.conftest import Wallet
from tests.relay.signing import QUOTA_DIALECTS
from users.models import User

pytestmark = pytest.mark.django_db
QUOTA = "/api/relay/quota"


def quota_body(profile: Profile, *, seconds: int = 0) -> dict[str, Any]:
    """Return a signed body, in the dialect of LSP-15's documentation."""
    timestamp = int(timezone.now().timestamp()) + seconds
    sign = QUOTA_DIALECTS[next(iter(QUOTA_DIALECTS))]
    signature = sign(profile.profile_address, timestamp, profile.controller.private_key)
    return {
        "address": profile.profile_address,
        "timestamp": timestamp,
        "signature": "0x" + signature.hex(),
    }


def test_without_a_subscription_the_period_is_empty(wallet: Wallet, profile: Profile) -> None:
    response = wallet.post(QUOTA, quota_body(profile))
    assert (response.status, response.headers["Content-Type"]) == (200, "application/json")
    assert response.body == {"quota": 10_000, "unit": "credits", "totalQuota": 0, "resetDate": -1}
    assert [type(value) for value in response.body.values()] == [int, str, int, int]


def test_a_subscriber_sees_the_periods_credits_and_end(wallet: Wallet, profile: Profile, user: User) -> None:
    start = timezone.now()
    set_allowance(
        user=user, credits=25_500, starts_at=start, ends_at=start + timedelta(days=30), renews=False
    )
    response = wallet.post(QUOTA, quota_body(profile))
    assert response.body == {
        "quota": 10_000,
        "unit": "credits",
        "totalQuota": 25_500,
        "resetDate": int((start + timedelta(days=30)).timestamp()),
    }


def test_an_address_is_read_in_any_casing(wallet: Wallet, profile: Profile) -> None:
    body = quota_body(profile)
    assert wallet.post(QUOTA, {**body, "address": body["address"].lower()}).status == 200
