"""GET and POST /api/postbacks/{network}/{token}: bytes in, the network's own response out."""

import base64
import hmac
import io
import json
import logging
import secrets
from typing import Any, cast

import pytest
from django.conf import settings as django_settings
from django.db import connections
from django.test import Client

from credits.models import CreditEntry
from credits.queries import balance_of
from earnings.models import Postback
from gateway.common.logging import without_path_tokens
from tests.earnings.ad_networks import SENDER, SLUGS, WEAK, Network, set_up
from tests.factories import UserFactory
from users.models import User

pytestmark = pytest.mark.django_db


def _path(network: Network, request: Any) -> str:
    return f"/api/postbacks/{network.slug}/{request.path_token}?{request.query.decode()}"


def _call(path: str, **headers: str) -> Any:
    """Call as a network does: from its own address, without cookies, over a proxy or not."""
    return Client(enforce_csrf_checks=True, REMOTE_ADDR=SENDER).get(path, headers=headers or None)


def _send(network: Network, user: User, **changes: Any) -> Any:
    request = network.request(network.reward(user, **changes))
    return _call(_path(network, request), **request.headers)


@pytest.mark.parametrize("slug", SLUGS)
def test_every_network_is_accepted_over_http(slug: str) -> None:
    user, network = UserFactory.create(), set_up(slug)

    response = _send(network, user, amount="7")

    assert response.status_code == 200
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    row = Postback.objects.get()
    assert (row.user_id, row.credits) == (user.pk, 7)
    assert row.request_id == response.headers["X-Request-ID"]
    assert balance_of(user).available == (0 if slug in WEAK else 7)


@pytest.mark.parametrize("times", [1, 2])
def test_a_conversion_that_adgem_posts_is_credited_once(times: int) -> None:
    user, network = UserFactory.create(), set_up("adgem")
    data = {"player_id": network.reference(user), "conversion_id": "c-1", "amount": 7, "payout": 0.07}
    body = json.dumps({"request_id": "r-1", "timestamp": 1720727170, "data": data}).encode()
    signature = hmac.new(network.secret.encode(), body, "sha256").hexdigest()

    for _ in range(times):
        response = Client(enforce_csrf_checks=True, REMOTE_ADDR=SENDER).post(
            f"/api/postbacks/adgem/{network.token}",
            data=body,
            content_type="application/json",
            headers={"Signature": signature},
        )
        assert (response.status_code, response.content) == (200, b"OK")

    assert balance_of(user).available == 7
    assert bytes(Postback.objects.get().raw) == body


@pytest.mark.parametrize(
    ("forwarded", "is_listed"),
    [
        (f"{SENDER}:51234", True),
        ("[2a01:4f8:d0a:30ff::2]:443", True),
        ("[2a01:04f8:0d0a:30ff::0002]", True),
        (f"::ffff:{SENDER}", True),
        (f"{SENDER}, 198.51.100.1:51234", False),
        ("[2a01:4f8:d0a:30ff::3]:443", False),
        (f"{SENDER}:", False),
        (f"{SENDER}.", False),
    ],
)
def test_an_address_list_uses_the_forwarded_address(settings: Any, forwarded: str, is_listed: bool) -> None:
    settings.TRUSTED_PROXY_COUNT = 1
    user = UserFactory.create()
    network = set_up("cpx-research", allowed_addresses=[SENDER, "2a01:4f8:d0a:30ff::2"])
    request = network.request(network.reward(user))

    response = Client(REMOTE_ADDR="10.0.0.1").get(
        _path(network, request), headers={"X-Forwarded-For": forwarded}
    )

    assert response.status_code == (200 if is_listed else 400)
    assert Postback.objects.count() == int(is_listed)


def test_a_refused_postback_gets_the_response_that_the_network_expects() -> None:
    network = set_up("theoremreach")
    request = network.request(network.reward(UserFactory.create()))

    response = _call(_path(network, request)[:-1])

    assert (response.status_code, response.content) == (400, b"0")
    assert not Postback.objects.exists()


@pytest.mark.parametrize("slug", ["tapjoy", "no-such-network"])
def test_a_wrong_path_gets_a_problem_document_without_details(slug: str) -> None:
    set_up("tapjoy")

    response = _call(f"/api/postbacks/{slug}/{secrets.token_urlsafe(32)}?id=1")

    assert response.status_code == 404
    assert response.headers["Content-Type"] == "application/problem+json"
    assert response.json()["code"] == "not-found"


def test_a_visit_may_be_posted_and_has_a_path_with_a_slash() -> None:
    user, network = UserFactory.create(), set_up("visit-link")
    request = network.request(network.reward(user, amount="3"))

    response = Client(enforce_csrf_checks=True).post(
        f"/api/postbacks/visit-link/{request.path_token}/?sub=1", data=b"x=1", content_type="text/plain"
    )

    assert (response.status_code, response.content) == (200, b"OK")
    assert balance_of(user).available == 3
    kept = bytes(Postback.objects.get().raw)
    assert json.loads(_unpad(kept))["amount"] == "3"
    assert request.path_token.partition(".")[2].encode() not in kept


def _unpad(content: bytes) -> bytes:
    return base64.urlsafe_b64decode(content + b"=" * (-len(content) % 4))


@pytest.mark.parametrize("where", ["query", "body"])
def test_more_than_16_kilobytes_are_not_read(where: str) -> None:
    network = set_up("visit-link")
    request = network.request(network.reward(UserFactory.create()))
    path, much = f"/api/postbacks/visit-link/{request.path_token}", "x" * 16_385

    response = (
        Client().get(f"{path}?{much}")
        if where == "query"
        else Client().post(path, data=much, content_type="text/plain")
    )

    assert response.status_code == 413
    assert response.json()["code"] == "request-too-large"
    assert not Postback.objects.exists()


def test_the_sender_is_the_one_seen_by_the_outermost_trusted_proxy(settings: Any) -> None:
    settings.TRUSTED_PROXY_COUNT = 1
    user, network = UserFactory.create(), set_up("tapjoy", allowed_addresses=["198.51.100.4"])
    request = network.request(network.reward(user))

    claimed = _call(_path(network, request), **{"X-Forwarded-For": "198.51.100.4, 203.0.113.99"})
    real = _call(_path(network, request), **{"X-Forwarded-For": "203.0.113.99, 198.51.100.4"})

    assert (claimed.status_code, real.status_code) == (403, 200)
    assert Postback.objects.count() == 1


def test_a_signed_address_is_public_url_with_any_host_header() -> None:
    user, network = UserFactory.create(), set_up("adgem")
    request = network.request(network.reward(user))

    assert _call(_path(network, request), Host="localhost").status_code == 200
    assert Postback.objects.count() == 1


def test_without_a_database_the_postback_is_postponed(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, network = UserFactory.create(), set_up("tapjoy")
    path = _path(network, network.request(network.reward(user)))
    with monkeypatch.context() as patch:
        patch.setitem(connections["default"].settings_dict, "HOST", "/nowhere")
        connections["default"].close()
        response = _call(path)
    connections["default"].close()

    assert response.status_code == 503
    assert response.json()["code"] == "service-unavailable"
    assert _call(path).status_code == 200
    assert balance_of(user).available > 0


def test_without_redis_every_reward_is_still_credited(settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    user, network = UserFactory.create(), set_up("tapjoy")

    assert _send(network, user).status_code == 200
    assert CreditEntry.objects.count() == 1


def test_too_many_postbacks_get_429(settings: Any) -> None:
    settings.POSTBACK_RATE = "2/minute"
    user, network = UserFactory.create(), set_up("tapjoy", allowed_addresses=[])
    request = network.request(network.reward(user))
    client = Client(REMOTE_ADDR=f"2001:db8:{secrets.token_hex(2)}:{secrets.token_hex(2)}::1")

    results = [client.get(_path(network, request)).status_code for _ in range(3)]

    assert results == [200, 200, 429]


def test_no_log_line_holds_a_path_token_or_a_query() -> None:
    network = set_up("tapjoy")
    token, query = network.token, "id=1&verifier=abcdef0123456789"
    formatter = cast("Any", django_settings.LOGGING)["formatters"]["json"]["()"]()
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.addHandler(handler)
    level = root.level
    root.setLevel(logging.INFO)
    try:
        for ending in (token, token[:-1]):
            _call(f"/api/postbacks/tapjoy/{ending}?{query}")
    finally:
        root.removeHandler(handler)
        root.setLevel(level)

    lines = stream.getvalue()
    assert "/api/postbacks/tapjoy/…" in lines or "/api/postbacks/tapjoy/\\u2026" in lines
    for secret in (token, token[:-1], network.secret, "abcdef0123456789"):
        assert secret not in lines


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"request": "GET /api/postbacks/tapjoy/abc?x=1"}', '{"request": "GET /api/postbacks/tapjoy/…"}'),
        ("Not Found: /api/postbacks/a/b/ and more", "Not Found: /api/postbacks/a/… and more"),
        ("GET /api/user/adNetworks", "GET /api/user/adNetworks"),
    ],
)
def test_path_tokens_are_removed_from_log_lines(line: str, expected: str) -> None:
    assert without_path_tokens(None, "", line) == expected
