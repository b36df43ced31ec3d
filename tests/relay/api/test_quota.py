"""POST /api/relay/quota on the wire."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from devstack.world.profiles import Profile
from tests.credits.allowances import set_allowance
from tests.factories import random_address
from tests.relay.api.conftest import Wallet
from tests.relay.api.test_execute import assert_problem
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
    answer = wallet.post(QUOTA, quota_body(profile))
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    assert answer.body == {"quota": 10_000, "unit": "credits", "totalQuota": 0, "resetDate": -1}
    assert [type(value) for value in answer.body.values()] == [int, str, int, int]


def test_a_subscriber_sees_the_periods_credits_and_end(wallet: Wallet, profile: Profile, user: User) -> None:
    start = timezone.now()
    set_allowance(
        user=user, credits=25_500, starts_at=start, ends_at=start + timedelta(days=30), renews=False
    )
    answer = wallet.post(QUOTA, quota_body(profile))
    assert answer.body == {
        "quota": 10_000,
        "unit": "credits",
        "totalQuota": 25_500,
        "resetDate": int((start + timedelta(days=30)).timestamp()),
    }


def test_an_address_is_read_in_any_casing(wallet: Wallet, profile: Profile) -> None:
    body = quota_body(profile)
    assert wallet.post(QUOTA, {**body, "address": body["address"].lower()}).status == 200


def test_outside_the_window_the_answer_has_the_servers_time(wallet: Wallet, profile: Profile) -> None:
    before = int(timezone.now().timestamp())
    answer = wallet.post(QUOTA, quota_body(profile, seconds=-6))
    members = assert_problem(answer, 401, "timestamp-out-of-window")
    assert list(members) == ["serverTime"]
    assert before <= members["serverTime"] <= timezone.now().timestamp()


def test_another_address_is_refused(wallet: Wallet, profile: Profile, user: User) -> None:
    body = {**quota_body(profile), "address": random_address()}
    members = assert_problem(wallet.post(QUOTA, body), 403, "not-your-profile")
    assert members == {"profile": user.profile_address}


def test_a_signature_of_no_controller_is_refused(wallet: Wallet, profile: Profile) -> None:
    body = quota_body(profile)
    other = quota_body(profile, seconds=1)["signature"]
    assert_problem(wallet.post(QUOTA, {**body, "signature": other}), 401, "quota-signature-invalid")
    malformed = body["signature"][:-2] + "07"
    assert_problem(wallet.post(QUOTA, {**body, "signature": malformed}), 400, "signature-malformed")
