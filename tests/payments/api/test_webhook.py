"""POST /webhooks/stripe: only what Stripe signed for us just now is stored, once."""

import json
import secrets
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client

from payments import checks
from payments.models import StripeEvent
from payments.queries import payment_counts
from payments.services import events
from payments.stripe import set_billing_client
from tests.fakes.billing import FakeBilling
from tests.payments.rows import all_rows
from tests.payments.webhook_events import signature

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fake")]
PATH = "/webhooks/stripe"


def _event(**changes: Any) -> dict[str, Any]:
    event = {
        "object": "event",
        "id": f"evt_{secrets.token_hex(8)}",
        "type": "invoice.paid",
        "api_version": "2026-10-28.endive",
        "created": int(time.time()),
        "livemode": False,
        "data": {"object": {"id": f"in_{secrets.token_hex(8)}", "object": "invoice"}},
    }
    return {**event, **changes}


def _post(body: bytes, header: str | None, path: str = PATH) -> Any:
    headers = {} if header is None else {"Stripe-Signature": header}
    return Client(enforce_csrf_checks=True).post(path, body, content_type="application/json", headers=headers)


@pytest.fixture
def event() -> dict[str, Any]:
    """Return a new event."""
    return _event()


@pytest.fixture
def body(event: dict[str, Any]) -> bytes:
    """Return it as Stripe sends it."""
    return json.dumps(event, indent=2).encode()


@pytest.mark.parametrize("path", [PATH, f"{PATH}/"])
def test_a_signed_event_is_stored_as_the_bytes_that_were_signed(
    event: dict[str, Any], body: bytes, path: str
) -> None:
    response = _post(body, signature(body), path)
    assert (response.status_code, response.json()) == (200, {"received": True})
    row = StripeEvent.objects.get()
    assert bytes(row.raw_body) == body
    assert (row.stripe_event_id, row.type, row.status) == (event["id"], event["type"], "received")
    assert (row.object_id, row.api_version) == (event["data"]["object"]["id"], event["api_version"])
    assert (row.attempts, row.last_error, row.processed_at) == (0, "", None)


def test_both_secrets_are_accepted_during_rotation(body: bytes) -> None:
    old, new = settings.STRIPE_WEBHOOK_SECRETS
    other = json.dumps(_event()).encode()
    assert _post(body, signature(body, secret=old)).status_code == 200
    assert _post(other, signature(other, secret=new)).status_code == 200
    assert StripeEvent.objects.count() == 2


def test_a_header_with_the_signatures_of_both_secrets_is_accepted(body: bytes) -> None:
    ours, foreign = signature(body), signature(body, secret="whsec_old")
    header = f"{foreign},{ours.split(',')[1]},v0=whatever"
    assert _post(body, header).status_code == 200


@pytest.mark.parametrize("seconds", [-290, 50])
def test_clocks_may_differ_a_little(body: bytes, seconds: int) -> None:
    assert _post(body, signature(body, at=time.time() + seconds)).status_code == 200


def _changed(body: bytes) -> bytes:
    place = secrets.randbelow(len(body))
    return body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]


def _now() -> int:
    return int(time.time())


FORGERIES: dict[str, Callable[[bytes], tuple[bytes, str | None]]] = {
    "no signature": lambda body: (body, None),
    "an empty signature": lambda body: (body, ""),
    "a random signature": lambda body: (body, f"t={_now()},v1={secrets.token_hex(32)}"),
    "another secret": lambda body: (body, signature(body, secret=f"whsec_{secrets.token_hex(12)}")),
    "an empty secret": lambda body: (body, signature(body, secret=" ")),
    "an old time": lambda body: (body, signature(body, at=_now() - 310)),
    "a future time": lambda body: (body, signature(body, at=_now() + 90)),
    "a time that was changed": lambda body: (body, f"t={_now() - 1},{signature(body).split(',')[1]}"),
    "a second, later time": lambda body: (body, f"t={_now() + 900},{signature(body)}"),
    "no time": lambda body: (body, signature(body).split(",")[1]),
    "no number for a time": lambda body: (body, f"t=now,{signature(body).split(',')[1]}"),
    "an endless time": lambda body: (body, f"t={'9' * 5000},{signature(body).split(',')[1]}"),
    "a time before time": lambda body: (body, f"t=-1,{signature(body).split(',')[1]}"),
    "letters beyond ASCII": lambda body: (body, f"t={_now()},v1=é{secrets.token_hex(8)}"),
    "an old scheme alone": lambda body: (body, signature(body).replace("v1=", "v0=")),
    "one changed byte": lambda body: (_changed(body), signature(body)),
    "one byte more": lambda body: (body + b" ", signature(body)),
    "no body": lambda body: (b"", signature(body)),
    "bytes that are no text": lambda body: (b"\xff\xfe" + body, signature(body)),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forgery_is_refused_and_leaves_no_row(body: bytes, forgery: str) -> None:
    before = all_rows()
    forged, header = FORGERIES[forgery](body)
    response = _post(forged, header)
    assert response.status_code == 400
    assert (response.json()["code"], response.headers["Content-Type"]) == (
        "webhook-refused",
        "application/problem+json",
    )
    assert all_rows() == before


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b'"event"',
        b"[" * 5000,
        json.dumps({"object": "event"}).encode(),
        json.dumps(_event(id=7)).encode(),
        json.dumps(_event(id="e" * 256)).encode(),
        json.dumps(_event(type="")).encode(),
        json.dumps(_event(created="soon")).encode(),
        json.dumps(_event(created=10**30)).encode(),
        json.dumps(_event(data=None)).encode(),
        json.dumps(_event(data={"object": {}})).encode(),
        json.dumps(_event(data={"object": {"id": None}})).encode(),
    ],
    ids=lambda content: content[:24].decode(),
)
def test_a_signed_body_that_is_not_an_event_is_refused(content: bytes) -> None:
    response = _post(content, signature(content))
    assert (response.status_code, response.json()["code"]) == (400, "webhook-refused")
    assert not StripeEvent.objects.exists()


NOT_USED: dict[str, dict[str, Any]] = {
    "a balance": {"type": "balance.available", "data": {"object": {"object": "balance", "available": []}}},
    "an upcoming invoice": {
        "type": "invoice.upcoming",
        "data": {"object": {"object": "invoice", "lines": {}}},
    },
    "a thin event": {"object": "v2.core.event", "type": "v1.invoice.paid", "data": None},
}


@pytest.mark.parametrize("kind", NOT_USED)
def test_a_signed_event_that_is_not_used_is_accepted_and_not_stored(kind: str) -> None:
    content = json.dumps(_event(**NOT_USED[kind])).encode()
    assert _post(content, signature(content)).status_code == 200
    assert _post(content, signature(content, secret="whsec_of_somebody")).status_code == 400
    assert not StripeEvent.objects.exists()


@pytest.mark.parametrize("type_", ["invoice.paid", "charge.dispute.created", "setup_intent.succeeded"])
def test_an_event_of_a_connected_account_is_done_at_once_whatever_its_mode(
    fake: FakeBilling, type_: str
) -> None:
    content = json.dumps(
        _event(type=type_, account="acct_x", livemode=secrets.choice([True, False]))
    ).encode()
    for _ in range(2):
        assert _post(content, signature(content)).status_code == 200
    row = StripeEvent.objects.get()
    assert (row.status, row.outcome, row.attempts) == ("processed", "not-ours", 0)
    assert not events.process(event_id=row.pk, now=fake.now())
    assert events.process_due(now=fake.now()) == 0
    assert not fake.calls


def test_an_event_of_the_other_mode_is_kept_counted_and_fails_the_check_until_the_key_matches(
    fake: FakeBilling, settings: Any
) -> None:
    content = json.dumps(_event(type="balance_settings.updated", livemode=True)).encode()
    assert _post(content, signature(content)).status_code == 200
    row = StripeEvent.objects.get()
    assert not events.process(event_id=row.pk, now=fake.now())
    row.refresh_from_db()
    assert (row.status, row.attempts) == ("failed", 1)
    assert "STRIPE_SECRET_KEY" in row.last_error
    assert not fake.calls
    assert payment_counts().failed_events == 1
    assert [message.id for message in checks.events_are_of_our_mode()] == ["payments.E003"]
    settings.STRIPE_SECRET_KEY = f"sk_live_{secrets.token_hex(12)}"
    assert events.process(event_id=row.pk, now=fake.now())
    assert checks.events_are_of_our_mode() == []


def test_without_a_secret_every_webhook_is_refused(body: bytes, settings: Any) -> None:
    header = signature(body)
    settings.STRIPE_WEBHOOK_SECRETS = []
    set_billing_client(None)
    assert _post(body, header).status_code == 400


def test_a_second_delivery_returns_200_and_is_not_stored(body: bytes, fake: FakeBilling) -> None:
    _post(body, signature(body))
    before = all_rows()
    responses = [_post(body, signature(body)) for _ in range(3)]
    assert [response.status_code for response in responses] == [200] * 3
    assert all_rows() == before


def test_a_webhook_is_acknowledged_without_calling_stripe(body: bytes, fake: FakeBilling) -> None:
    with fake.away():
        assert _post(body, signature(body)).status_code == 200
    assert not fake.calls


@pytest.mark.parametrize("method", ["get", "put", "delete", "patch"])
def test_only_post_is_allowed(method: str) -> None:
    refused = getattr(Client(), method)(PATH)
    assert (refused.status_code, refused.headers["Allow"]) == (405, "POST")
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert refused.json()["code"] == "method-not-allowed"


@pytest.mark.django_db(transaction=True)
def test_an_event_is_refused_with_503_while_the_database_is_read_only_and_stored_afterwards(
    body: bytes,
) -> None:
    client = Client(raise_request_exception=False)
    headers = {"Stripe-Signature": signature(body)}
    connection.cursor().execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")

    refused = client.post(PATH, body, content_type="application/json", headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (503, "service-unavailable")
    assert refused.headers["Retry-After"] == "2"
    assert StripeEvent.objects.count() == 0

    assert client.post(PATH, body, content_type="application/json", headers=headers).status_code == 200
    assert StripeEvent.objects.count() == 1
