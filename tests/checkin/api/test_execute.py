"""GET and POST /api/user/executeCheckIn on the wire."""

import re
import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from jsonschema import validate

from checkin.models import CheckIn, DropTable
from checkin.queries import CHECK_INS
from gateway.staff.pauses import switch
from tests.checkin.api.shapes import CHECK_IN_RESULT, EXECUTE
from tests.checkin.items import TYPES
from tests.checkin.rows import allow_attempts, everything, only, subscribe, wear_the_top_badges
from tests.factories import UserFactory
from tests.relay.api.conftest import ApiResponse, Wallet, wallet_of
from tests.relay.api.test_execute import assert_problem
from tests.rewards.rows import experience_of
from users.models import User

pytestmark = pytest.mark.django_db


def ask(wallet: Wallet, method: str, path: str = EXECUTE, **options: Any) -> ApiResponse:
    """Ask without a body; left alone, Django's client posts a form."""
    body: dict[str, Any] = {"data": b"", "content_type": "application/json"} if method == "post" else {}
    return wallet.send(method, path, **body, **options)


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("path", [EXECUTE, EXECUTE + "/"])
def test_the_response_to_a_check_in_by_get_or_post_follows_the_contract(
    wallet: Wallet, method: str, path: str
) -> None:
    response = ask(wallet, method, path)

    assert (response.status, response.headers["Content-Type"]) == (200, "application/json")
    assert response.headers["Cache-Control"] == "no-store"
    validate(response.body, CHECK_IN_RESULT)
    check_in = CheckIn.objects.get()
    assert response.body["result"] == response.body["possibleResults"][check_in.result_place]
    assert [drop["type"] for drop in response.body["possibleResults"]] == [
        stored["type"] for stored in check_in.possible_results
    ]


@pytest.mark.parametrize("drop_type", TYPES)
def test_only_bonuses_have_minutes(wallet: Wallet, drop_type: str) -> None:
    [offered] = only(drop_type)
    body = wallet.send("get", EXECUTE).body
    validate(body, CHECK_IN_RESULT)
    assert body["result"]["type"] == drop_type
    assert body["result"].get("effectiveTimeInMinutes") == offered.minutes
    assert body["result"]["value"] == float(CheckIn.objects.get().result["value"])


@pytest.mark.parametrize("kind", ["newcomer", "subscriber", "lapsed", "top badge"])
def test_the_response_has_the_same_shape_for_every_user(user: User, proven: User, kind: str) -> None:
    who = user if kind == "newcomer" else proven
    if kind != "newcomer":
        subscribe(who, timezone.now() - timedelta(days=90 if kind == "lapsed" else 0))
    if kind == "top badge":
        wear_the_top_badges(who)
    body = ask(wallet_of(who), "post").body
    validate(body, CHECK_IN_RESULT)
    assert body["possibleResults"]
    badge = CheckIn.objects.get(user=who).permanent_table.badge
    assert badge
    assert (badge.exp_upper_bound is None) == (kind == "top badge")


def test_without_attempts_left_the_error_names_the_reset_time(wallet: Wallet) -> None:
    wallet.send("get", EXECUTE)
    before = everything()

    members = assert_problem(wallet.send("get", EXECUTE), 409, "check-in-unavailable")

    assert list(members) == ["nextCheckInAt"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT00:00:00Z", members["nextCheckInAt"])
    next_at = datetime.fromisoformat(members["nextCheckInAt"])
    assert timedelta() < next_at - timezone.now() <= timedelta(days=1)
    assert next_at.tzinfo == UTC
    assert everything() == before


def test_a_repeat_with_the_key_returns_the_same_draw(wallet: Wallet) -> None:
    allow_attempts(3)
    headers = {"Idempotency-Key": secrets.token_urlsafe(12)}
    first = wallet.send("get", EXECUTE, headers=headers)
    before = everything()
    for method in ("get", "post", "get"):
        again = ask(wallet, method, headers=headers)
        assert (again.status, again.body) == (200, first.body)
    assert everything() == before


def test_another_key_draws_again(wallet: Wallet) -> None:
    allow_attempts(2)
    for key in ("first", "second"):
        assert wallet.send("get", EXECUTE, headers={"Idempotency-Key": key}).status == 200
    assert set(CheckIn.objects.values_list("idempotency_key", flat=True)) == {"first", "second"}


@pytest.mark.parametrize("key", ["", "x" * 129, "with space", "ünïcode", "tab\there", "\x7f"])
def test_a_key_that_cannot_be_kept_is_refused(wallet: Wallet, key: str) -> None:
    before = everything()
    response = wallet.send("get", EXECUTE, headers={"Idempotency-Key": key})
    members = assert_problem(response, 400, "invalid-request")
    assert len(members["errors"]) == 1
    assert everything() == before


@pytest.mark.parametrize("key", ["x" * 128, "!", "550e8400-e29b-41d4-a716-446655440000"])
def test_any_visible_ascii_is_a_key(wallet: Wallet, key: str) -> None:
    assert wallet.send("get", EXECUTE, headers={"Idempotency-Key": key}).status == 200
    assert CheckIn.objects.get().idempotency_key == key


def test_while_paused_the_response_is_503_and_no_attempt_is_used(wallet: Wallet) -> None:
    staff = UserFactory.create(profile_address=None, is_staff=True)
    switch(CHECK_INS, is_paused=True, actor=staff, reason="the private reason")
    before = everything()

    response = wallet.send("get", EXECUTE)

    assert_problem(response, 503, "check-ins-paused")
    assert response.headers["Retry-After"] == "600"
    assert "private" not in str(response.body)
    assert everything() == before


def test_without_tables_the_response_is_503(wallet: Wallet) -> None:
    DropTable.objects.update(badge=None)
    response = ask(wallet, "post")
    assert_problem(response, 503, "check-ins-not-ready")
    assert response.headers["Retry-After"] == "600"


def test_clients_without_a_token_and_staff_cannot_check_in(anonymous: Wallet) -> None:
    for method in ("get", "post"):
        assert_problem(ask(anonymous, method), 401, "not-authenticated")
    assert not CheckIn.objects.exists()


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
def test_other_methods_are_refused(wallet: Wallet, method: str) -> None:
    assert_problem(wallet.send(method, EXECUTE), 405, "method-not-allowed")
    assert not CheckIn.objects.exists()


@pytest.mark.parametrize("purpose", ["prefetch", "prefetch;prerender", "Prefetch"])
def test_a_prefetch_spends_nothing(wallet: Wallet, purpose: str) -> None:
    before = everything()
    response = wallet.send("get", EXECUTE, headers={"Sec-Purpose": purpose})
    assert_problem(response, 400, "invalid-request")
    assert "prefetch" in response.body["detail"]
    assert everything() == before


@pytest.mark.parametrize(
    ("content_type", "body", "status", "code"),
    [
        ("application/xml", b"<checkIn/>", 415, "unsupported-media-type"),
        ("text/plain", b"{}", 415, "unsupported-media-type"),
        ("application/x-www-form-urlencoded", b"a=1", 415, "unsupported-media-type"),
        ("multipart/form-data; boundary=b", b"--b--", 415, "unsupported-media-type"),
        ("application/octet-stream", b"\xff\x00", 415, "unsupported-media-type"),
        ("application/json", b"{", 400, "invalid-request"),
        ("application/json", b"[" * 10_000, 400, "invalid-request"),
        ("application/json", b"\xff", 400, "invalid-request"),
        ("application/json", b" " * 300_000, 413, "request-too-large"),
    ],
)
def test_a_post_with_a_body_that_is_not_json_spends_nothing(
    wallet: Wallet, content_type: str, body: bytes, status: int, code: str
) -> None:
    before = everything()
    response = wallet.send("post", EXECUTE, data=body, content_type=content_type)
    assert_problem(response, status, code)
    assert everything() == before


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b'{"drop": "CREDITS", "attempt": 99}'),
        ("application/json; charset=utf-8", b"[]"),
        ("application/json", b""),
        ("application/xml", b""),
    ],
)
def test_json_or_nothing_may_be_posted_and_changes_nothing_of_the_draw(
    wallet: Wallet, content_type: str, body: bytes
) -> None:
    response = wallet.send("post", EXECUTE, data=body, content_type=content_type)
    assert response.status == 200
    assert CheckIn.objects.get().attempt == 1


def test_callers_are_slowed_down_each_for_themselves(wallet: Wallet, settings: Any) -> None:
    settings.CHECKIN_RATE = "1/hour"
    assert wallet.send("get", EXECUTE).status == 200
    response = wallet.send("get", EXECUTE)
    assert_problem(response, 429, "too-many-requests")
    assert 3_000 < int(response.headers["Retry-After"]) <= 3_601


def test_a_browser_may_send_the_key(settings: Any) -> None:
    settings.CORS_ALLOW_ALL_ORIGINS = True
    response = Client().options(
        EXECUTE,
        headers={
            "Origin": "https://wallet.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization, idempotency-key",
        },
    )
    assert "idempotency-key" in response.headers["Access-Control-Allow-Headers"]


def test_a_later_refusal_leaves_the_award_unchanged(wallet: Wallet, proven: User) -> None:
    [offered] = only("EXPERIENCE")
    responses = [wallet.send("get", EXECUTE) for _ in range(2)]
    assert [response.status for response in responses] == [200, 409]
    won = experience_of(proven)[0]
    assert won == responses[0].body["result"]["value"]
    assert offered.least <= won <= offered.most
