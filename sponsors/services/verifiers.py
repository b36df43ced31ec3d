"""
Asks the sponsor's own server, the verifier, whether the sponsor pays for a call.

A question is one POST request, signed as in the Standard Webhooks specification. The server is not trusted: only a
valid response within one second counts, and the policy's limits apply even after a yes. In each process, at most two
threads wait for one server, and a quarter of the threads for all servers together, of which half are kept for servers
that responded the last time. After three failures in a row, a circuit breaker allows one request every ten seconds.
Responses are cached for some seconds by the call's hash.

Three failures in a row, of all processes together, are an outage. Its owners are told once: `webhooks` reads
`announced_at`.
"""

import base64
import json
import secrets
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

from django.conf import settings
from django.db.models import Model
from standardwebhooks import Webhook

from gateway.common import clock, db
from gateway.common.crypto import Resealed, SealedUnderAnotherKey, reseal, seal, unseal
from gateway.common.guards import CircuitOpen, Guard, NoShare, Shares
from gateway.common.public_http import AddressRefused, NoResponse, post
from gateway.common.statements import Statements
from gateway.staff.form_kinds import Values
from sponsors.models import Verifier
from sponsors.rules.policies import OutsideResponse, Verification
from sponsors.rules.vouchers import UINT64_MAX
from sponsors.services.recent import Recent

_PURPOSE = "sponsors.verifier-secret"
_PREFIX, _SECRET_BYTES = "whsec_", 32
_SECONDS, _RESPONSE_BYTES, _OK = 1.0, 1024, 200
_PLACES, _WAIT_SECONDS = 2, 0.2
# A server that fails again and again is announced at most once in this time.
_QUIET = timedelta(hours=1)
_recent: Recent[tuple[int, OutsideResponse]] = Recent(seconds=10.0)


class _Sql(Statements, file=__file__):
    failed: str


@dataclass(frozen=True, slots=True)
class AskedCall:
    """The call that a question is about."""

    profile: str
    controller: str
    chain_id: int
    digest: str
    payload: bytes


def ask(question: Verification, call: AskedCall) -> OutsideResponse | None:
    """Return the verifier's response, or its fault; None without a verifier, or a free thread to wait for it."""
    asked = Verifier.objects.filter(sponsor__policies__versions=question.version_id, removed_at=None)
    verifier = asked.select_related("sponsor").first()
    if verifier is None:
        return None
    # The cache key includes the verifier, so that a removed one's responses are no longer used.
    key = verifier.pk, question.version_id, call.digest
    known = _recent.get(key)
    # A response for more credits also holds for fewer.
    if known is not None and question.credits <= known[0]:
        return known[1]
    response = _guarded(verifier, _body(question, call, sponsor=verifier.sponsor.slug))
    if response is None:
        return (
            OutsideResponse(False, fault=f"not asked yet again, after {verifier.fault}")
            if verifier.fault
            else None
        )
    _record(verifier, response)
    if not response.fault:
        _recent.keep(key, (question.credits, response))
    return response


def _record(verifier: Verifier, response: OutsideResponse) -> None:
    """Count a failure, or end an outage. Not in one transaction with anything else: the counts are for people."""
    if response.fault:
        now = clock.now()
        values = {"verifier": verifier.pk, "fault": response.fault, "now": now, "quiet_since": now - _QUIET}
        db.all_rows(_Sql.failed, values)
    elif verifier.failures:
        Verifier.objects.filter(pk=verifier.pk).update(failures=0, fault="", failing_since=None)


def _guarded(verifier: Verifier, body: bytes) -> OutsideResponse | None:
    guard = _guard_of(verifier.pk)
    response: OutsideResponse | None = None
    try:
        with ExitStack() as places:
            places.enter_context(_threads().place(verifier.pk))
            if not guard.has_responded:
                places.enter_context(_threads_of_unproven().place(verifier.pk))
            places.enter_context(guard.place())
            response = _asked(verifier, body)
            if response.fault:
                guard.failed()
                raise CircuitOpen
    except (CircuitOpen, NoShare):
        pass
    return response


@cache
def _threads() -> Shares:
    """Return the threads of this process that may wait for verifiers. Some of a verifier's wait for the others."""
    return Shares(total=settings.WEB_THREADS // 4, each=2 * _PLACES)


@cache
def _threads_of_unproven() -> Shares:
    """Return those that may wait for verifiers that did not respond the last time, or were not asked before."""
    return Shares(total=settings.WEB_THREADS // 8, each=_PLACES)


@cache
def _guard_of(verifier_id: int) -> Guard:
    return Guard(places=_PLACES, wait_seconds=_WAIT_SECONDS)


def _body(question: Verification, call: AskedCall, *, sponsor: str) -> bytes:
    facts = {
        "sponsor": sponsor,
        "policy": question.policy,
        "profile": call.profile,
        "controller": call.controller,
        "chainId": call.chain_id,
        "hash": call.digest,
        "payload": "0x" + call.payload.hex(),
        "credits": question.credits,
    }
    return json.dumps(facts).encode()


def _asked(verifier: Verifier, body: bytes) -> OutsideResponse:
    now, question_id = clock.now(), f"question_{secrets.token_hex(12)}"
    try:
        secret = unseal(verifier.secret, keys=settings.WEBHOOK_SECRET_KEYS, purpose=_PURPOSE)
        response = post(
            verifier.url,
            body=body,
            headers={
                "Content-Type": "application/json",
                "User-Agent": "credit-relay-gateway",
                "webhook-id": question_id,
                "webhook-timestamp": str(int(now.timestamp())),
                "webhook-signature": Webhook(secret).sign(question_id, now, body.decode()),
            },
            seconds=_SECONDS,
            allowed=Verifier.allowed_addresses(),
            response_bytes=_RESPONSE_BYTES,
        )
    except AddressRefused:
        return OutsideResponse(False, fault="its address is not public")
    except NoResponse:
        return OutsideResponse(False, fault="none within a second")
    except SealedUnderAnotherKey:
        return OutsideResponse(False, fault="the operator cannot sign the question")
    if response.status != _OK:
        redirect = ", a redirect, which is not followed" if 300 <= response.status < 400 else ""
        return OutsideResponse(False, fault=f"status {response.status}{redirect}")
    return _response_in(response.body) or OutsideResponse(False, fault="a body of another form")


def _response_in(body: bytes) -> OutsideResponse | None:
    """Parse a response body such as `{"pay": true, "maximumCredits": 500}`; return None for any other form."""
    try:
        fields: Any = json.loads(body)
    # RecursionError: JSON that is nested very deeply.
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or not isinstance(fields.get("pay"), bool):
        return None
    most = fields.get("maximumCredits")
    if most is None:
        return OutsideResponse(fields["pay"])
    is_number = isinstance(most, int) and not isinstance(most, bool) and 0 <= most <= UINT64_MAX
    return OutsideResponse(fields["pay"], most) if is_number else None


def save(verifier: Verifier, values: Values) -> Model:
    """
    Store a new verifier, which decides from the next call on. `create_secret` returns a secret for it.

    Raises:
        ValidationError: the sponsor already has a verifier, or the service must not request the URL.
    """
    _, verifier.secret = _new_secret()
    verifier.full_clean()
    verifier.save(force_insert=True)
    return verifier


def create_secret(verifier: Verifier) -> str:
    """Replace the secret that signs the questions; return the new one."""
    secret, sealed = _new_secret()
    Verifier.objects.filter(pk=verifier.pk).update(secret=sealed)
    return secret


def remove(verifier: Verifier) -> str:
    """Stop using the verifier; return the outcome as a sentence."""
    Verifier.objects.filter(pk=verifier.pk, removed_at=None).update(removed_at=clock.now())
    return f"{verifier.url} gets no more requests. Policies that require its response pay for nothing."


def reseal_secrets() -> Resealed:
    """Encrypt all secrets under the first key, after a key rotation."""
    rows = Verifier.objects.all()
    return reseal(rows, fields=["secret"], keys=settings.WEBHOOK_SECRET_KEYS, purpose=_PURPOSE)


def _new_secret() -> tuple[str, str]:
    """Return a new secret, and its encrypted form."""
    secret = _PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()
    return secret, seal(secret, keys=settings.WEBHOOK_SECRET_KEYS, purpose=_PURPOSE)
