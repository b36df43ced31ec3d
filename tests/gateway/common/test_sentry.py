"""Events for Sentry name no person and carry no secret, and still describe the error."""

import json
import secrets
from typing import Any

import pytest
import sentry_sdk
from django.conf import settings
from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport

from gateway.common.logging import sentry_options, start_sentry

TOKEN = f"eyJ{secrets.token_hex(9)}.{secrets.token_hex(20)}.{secrets.token_urlsafe(20)}"
SIGNATURE, ADDRESS, HASH = (f"0x{secrets.token_hex(length)}" for length in (65, 20, 32))
SECRETS = {
    "access token": TOKEN,
    "signature": SIGNATURE,
    "address": ADDRESS,
    "e-mail": "somebody@mail.example",
    "key of Stripe": f"sk_live_{secrets.token_hex(12)}",
    "password": secrets.token_hex(8),
    "key of a node": secrets.token_hex(16),
    "token of a postback": secrets.token_hex(12),
}


class MemoryTransport(Transport):
    """Keeps what would be sent."""

    sent: list[Any]

    def capture_envelope(self, envelope: Envelope) -> None:
        self.sent.append(envelope.get_event())


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> sentry_sdk.Client:
    """Sentry's library as the service sets it up."""
    monkeypatch.setattr(settings, "SENTRY_DSN", "https://public@sentry.example/1")
    options = {**sentry_options(), "integrations": [], "default_integrations": False}
    client = sentry_sdk.Client(transport=MemoryTransport, **options)
    client.transport.sent = []  # type: ignore[union-attr]
    return client


def fail() -> None:
    signature = SIGNATURE  # noqa: F841 - a local variable, as Sentry would send it
    raise ValueError(
        f"{HASH}: {TOKEN} of {ADDRESS} <{SECRETS['e-mail']}> with {SIGNATURE[2:]} at "
        f"https://user:{SECRETS['password']}@node.example/v1/{SECRETS['key of a node']}?x=1"
    )


def test_events_are_scrubbed_before_they_are_sent(client: sentry_sdk.Client) -> None:
    with sentry_sdk.new_scope() as scope:
        scope.set_client(client)
        scope.set_tag("request_id", "1234-abcd")
        scope.set_context("call", {"signature": SIGNATURE, "hash": HASH, "raw": SIGNATURE.encode()})
        scope.set_extra("said", [f"Bearer {TOKEN}", {"text": f"paid with {SECRETS['key of Stripe']}"}])
        scope.add_event_processor(with_request)
        try:
            fail()
        except ValueError:
            scope.capture_exception()
    (event,) = client.transport.sent  # type: ignore[union-attr]

    text = json.dumps(event)
    assert [name for name, secret in SECRETS.items() if secret in text] == []
    assert SIGNATURE[2:] not in text
    assert event["tags"]["request_id"] == "1234-abcd"
    assert (event["contexts"]["call"]["hash"], event["exception"]["values"][0]["type"]) == (
        HASH,
        "ValueError",
    )
    assert f"{HASH}: [removed] of {ADDRESS[:6]}…{ADDRESS[-4:]}" in event["exception"]["values"][0]["value"]
    assert event["exception"]["values"][0]["stacktrace"]["frames"][-1]["function"] == "fail"
    assert "vars" not in text


def with_request(event: Any, hint: Any) -> Any:
    """Add the request as Sentry's integration for Django does, at its most talkative."""
    event["request"] = {
        "url": f"https://gateway.example/api/postbacks/tapjoy/{SECRETS['token of a postback']}",
        "headers": {"Authorization": f"Basic {SECRETS['password']}", "X-Forwarded-For": "203.0.113.7"},
        "cookies": {"sessionid": SECRETS["password"]},
        "query_string": f"token={TOKEN}",
        "data": {"refreshToken": TOKEN, "receiptEmail": SECRETS["e-mail"]},
    }
    event["user"] = {"id": "7", "ip_address": "203.0.113.7", "email": SECRETS["e-mail"]}
    return event


def test_nothing_is_set_up_without_a_dsn(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(sentry_sdk, "init", lambda **options: calls.append(options))
    start_sentry()
    assert calls == []
    monkeypatch.setattr(settings, "SENTRY_DSN", "https://public@sentry.example/1")
    start_sentry()
    (options,) = calls
    assert (options["send_default_pii"], options["include_local_variables"]) == (False, False)
    assert (options["max_breadcrumbs"], options["max_request_body_size"]) == (0, "never")
