"""GET /api/user/checkInFairness on the wire."""

import hashlib
from datetime import datetime, timedelta

import pytest
from django.utils import timezone
from jsonschema import validate

from checkin.models import DailySeed
from checkin.services import seeds
from checkin.services.checkins import execute
from tests.checkin.api.shapes import DROP, FAIRNESS
from tests.checkin.rows import allow_attempts, subscribe
from tests.relay.api.conftest import Wallet, wallet_of
from tests.relay.api.test_execute import assert_problem
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("path", [FAIRNESS, FAIRNESS + "/"])
def test_the_response_has_commitments_seeds_draws_and_tables(
    proven: User, long_ago: datetime, path: str
) -> None:
    allow_attempts(2)
    subscribe(proven, long_ago)
    made = [execute(user=proven, now=long_ago) for _ in range(2)]
    seeds.commit_and_reveal(now=timezone.now())

    response = wallet_of(proven).send("get", path)

    assert (response.status, response.headers["Cache-Control"]) == (200, "no-store")
    body = response.body
    assert body["profileAddress"] == proven.profile_address
    assert [row["attempt"] for row in body["draws"]] == [2, 1]
    assert {row["day"] for row in body["draws"]} == {str(long_ago.date())}
    for row, check_in in zip(body["draws"], reversed(made), strict=True):
        assert row["tables"] == [check_in.permanent_table_id, check_in.subscriber_table_id]
        assert row["experienceOnly"] is False
        for drop in (row["result"], *row["possibleResults"]):
            validate(drop, DROP)
    assert {row["id"] for row in body["tables"]} == set(body["draws"][0]["tables"])
    for row in body["revealed"]:
        assert hashlib.sha256(bytes.fromhex(row["seed"])).hexdigest() == row["commitment"]
    assert "HMAC-SHA256" in body["howToRecompute"]


def test_seeds_of_yesterday_today_and_tomorrow_are_not_revealed(proven: User) -> None:
    now = timezone.now()
    for age in range(-1, 4):
        seeds.seed_of(now.date() - timedelta(days=age))
    execute(user=proven, now=now)
    seeds.commit_and_reveal(now=now)

    body = wallet_of(proven).send("get", FAIRNESS).body

    assert {row["day"] for row in body["revealed"]} == {
        str(now.date() - timedelta(days=age)) for age in (2, 3)
    }
    assert body["draws"] == []
    assert set(body["today"]) == set(body["tomorrow"]) == {"day", "commitment"}
    secret = [seeds.secret_seed_of(row).hex() for row in DailySeed.objects.filter(revealed_at=None)]
    assert len(secret) == 3
    assert not [text for text in secret if text in str(body)]


def test_the_commitment_is_the_same_before_and_after_the_draw(wallet: Wallet, proven: User) -> None:
    promised = wallet.send("get", FAIRNESS).body["today"]["commitment"]
    check_in = execute(user=proven, now=timezone.now())
    assert check_in.seed.commitment == promised
    assert wallet.send("get", FAIRNESS).body["today"]["commitment"] == promised


def test_a_request_without_a_token_is_refused(anonymous: Wallet) -> None:
    assert_problem(anonymous.send("get", FAIRNESS), 401, "not-authenticated")


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_other_methods_are_refused(wallet: Wallet, method: str) -> None:
    assert_problem(wallet.send(method, FAIRNESS), 405, "method-not-allowed")
