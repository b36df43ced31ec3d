"""
Deliver messages: claim those that are due, post them signed, and record the responses.

A message is claimed in one transaction and its response recorded in another, with only the network request in between.
If a worker dies in between, its claim expires and the message is sent again, so delivery is at least once. Only the
first waiting message of an ordering key is due, so a call's messages are delivered in order.

The threads that send are shared: `rules.further_deliveries` says how many a receiver gets. Receivers that respond are
served while others hang.
"""

import logging
import math
import random
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef
from standardwebhooks import Webhook

from gateway.common import clock
from gateway.common.crypto import SealedUnderAnotherKey
from gateway.common.leases import try_lease
from gateway.common.public_http import AddressRefused, NoResponse, post
from webhooks.models import Delivery, Endpoint, Message
from webhooks.rules import DELIVERIES, Pace, Receiver, further_deliveries
from webhooks.services import endpoints

logger = logging.getLogger(__name__)

# The backoff proposed by the Standard Webhooks specification: ten attempts in three days.
_PAUSES = tuple(
    timedelta(seconds=seconds) for seconds in (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
)
MAX_ATTEMPTS = len(_PAUSES) + 1
# Jitter, so that a recovered receiver does not get all messages in the same second.
_JITTER = 0.1
# A claim expires after this time, which is longer than an attempt.
CLAIM_TIME = timedelta(minutes=2)
# A receiver that takes longer than this is quiet.
_PROMPT_SECONDS = 2.0
# How long a run begins attempts at receivers of each pace. A run ends once all its attempts have ended, so it stops
# early to begin those that may last until the timeout.
_RUN_SECONDS = {Pace.QUIET: 15.0, Pace.UNKNOWN: 30.0, Pace.PROMPT: 60.0}
# Receivers with due messages are read at this interval.
_LOOK_SECONDS = 1.0
_GONE = 410
_SHOWN_LETTERS = 500


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one attempt: a status, or an error without one."""

    started_at: datetime
    milliseconds: int
    status: int | None = None
    response: str = ""
    error: str = ""

    @property
    def is_success(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def deliver_due(*, now: datetime) -> int:
    """Deliver due messages for a minute or less; return the number of attempts."""
    due = Message.objects.filter(status=Message.Status.WAITING, next_attempt_at__lte=now)
    if not due.exists():
        return 0
    with try_lease("webhooks.deliver") as acquired:
        return _Run(now).go() if acquired else 0


class _Attempt(NamedTuple):
    message: Message
    began: float


class _Run:
    """A run with sending threads; only this thread uses the database."""

    def __init__(self, now: datetime) -> None:
        self._now, self._began = now, time.monotonic()
        self._sending: dict[Future[Result], _Attempt] = {}
        # Whether the last response of an endpoint in this run was prompt.
        self._was_prompt: dict[int, bool] = {}
        self._waiting: Sequence[Endpoint] = ()
        self._looked_at = -math.inf
        self._attempts = 0

    def go(self) -> int:
        with ThreadPoolExecutor(DELIVERIES, thread_name_prefix="webhooks") as threads:
            while self._start(threads) or self._sending:
                ended, _ = wait(self._sending, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED)
                for future in ended:
                    self._end(self._sending.pop(future).message, future.result())
        return self._attempts

    def _end(self, message: Message, result: Result) -> None:
        is_prompt = result.status is not None and result.milliseconds <= _PROMPT_SECONDS * 1000
        self._was_prompt[message.endpoint_id] = is_prompt
        record(message, result, now=self._moment())

    def _moment(self) -> datetime:
        return self._now + timedelta(seconds=time.monotonic() - self._began)

    def _start(self, threads: ThreadPoolExecutor) -> bool:
        """Claim due messages for free threads, the oldest first; return whether there were any."""
        begun, lasted = 0, time.monotonic() - self._began
        for endpoint in self._endpoints():
            receiver = self._receiver(endpoint)
            if lasted > _RUN_SECONDS[receiver.pace]:
                continue
            free = further_deliveries(
                receiver, [self._receiver(one.message.endpoint) for one in self._sending.values()]
            )
            for message in claim(endpoint, limit=free, now=self._moment()):
                future = threads.submit(send, message, secrets_of(endpoint))
                self._sending[future] = _Attempt(message, time.monotonic())
                begun += 1
        self._attempts += begun
        return bool(begun)

    def _endpoints(self) -> Sequence[Endpoint]:
        """Return the endpoints with due messages as of the last second, the one that waits longest first."""
        if time.monotonic() - self._looked_at > _LOOK_SECONDS:
            self._waiting, self._looked_at = list(Endpoint.objects.with_due(self._moment())), time.monotonic()
        return self._waiting

    def _receiver(self, endpoint: Endpoint) -> Receiver:
        owner = f"sponsor {endpoint.sponsor_id}" if endpoint.sponsor_id else f"endpoint {endpoint.pk}"
        return Receiver(endpoint.pk, owner, self._pace(endpoint))

    def _pace(self, endpoint: Endpoint) -> Pace:
        slow_since = time.monotonic() - _PROMPT_SECONDS
        if any(
            one.message.endpoint_id == endpoint.pk and one.began < slow_since
            for one in self._sending.values()
        ):
            return Pace.QUIET
        if endpoint.pk not in self._was_prompt:
            return Pace.QUIET if endpoint.failing_since else Pace.UNKNOWN
        return Pace.PROMPT if self._was_prompt[endpoint.pk] else Pace.QUIET


def claim(endpoint: Endpoint, *, limit: int, now: datetime) -> Sequence[Message]:
    """Claim and return messages that are due at the endpoint, unless it is disabled."""
    if limit <= 0:
        return []
    waiting = Message.objects.filter(
        endpoint=endpoint, endpoint__disabled_at=None, status=Message.Status.WAITING
    )
    earlier = Message.objects.filter(
        endpoint=OuterRef("endpoint"),
        ordering_key=OuterRef("ordering_key"),
        status=Message.Status.WAITING,
        pk__lt=OuterRef("pk"),
    )
    due = waiting.filter(~Exists(earlier), next_attempt_at__lte=now).order_by("next_attempt_at", "pk")
    with transaction.atomic(durable=True):
        claimed = list(due.select_for_update(skip_locked=True, no_key=True, of=("self",))[:limit])
        Message.objects.filter(pk__in=[message.pk for message in claimed]).update(
            attempts=F("attempts") + 1, next_attempt_at=now + CLAIM_TIME
        )
    for message in claimed:
        message.attempts += 1
        message.endpoint = endpoint
    return claimed


def secrets_of(endpoint: Endpoint) -> list[str]:
    """Return the secrets to sign with; if no key decrypts them, log an error and return none."""
    try:
        return endpoints.live_secrets(endpoint)
    except SealedUnderAnotherKey:
        logger.error("no key in WEBHOOK_SECRET_KEYS decrypts the secret of endpoint %s", endpoint.pk)
        return []


def send(message: Message, secrets: Iterable[str]) -> Result:
    """Post the message once, signed with each of the secrets, and return the result."""
    started_at, began = clock.now(), time.monotonic()
    status, response, error = _posted(message, list(secrets), started_at)
    return Result(started_at, round((time.monotonic() - began) * 1000), status, response, error)


def _posted(message: Message, secrets: list[str], moment: datetime) -> tuple[int | None, str, str]:
    if not secrets:
        return None, "", "No key decrypts the endpoint's secret."
    try:
        response = post(
            message.endpoint.url,
            body=message.body.encode(),
            headers=signed_headers(message, secrets, moment),
            seconds=settings.WEBHOOK_TIMEOUT_SECONDS,
            allowed=endpoints.allowed_addresses(),
        )
    except (AddressRefused, NoResponse) as failure:
        return None, "", str(failure)
    return response.status, response.body.decode(errors="replace").replace("\0", "")[:_SHOWN_LETTERS], ""


def signed_headers(message: Message, secrets: Iterable[str], moment: datetime) -> dict[str, str]:
    """Return the Standard Webhooks headers: event id, time of this attempt, and a signature with each secret."""
    signatures = [Webhook(secret).sign(message.public_id, moment, message.body) for secret in secrets]
    return {
        "Content-Type": "application/json",
        "User-Agent": "credit-relay-gateway",
        "webhook-id": message.public_id,
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": " ".join(signatures),
    }


@transaction.atomic(durable=True)
def record(message: Message, result: Result, *, now: datetime) -> None:
    """Record the result of an attempt, and when the next one is due."""
    Delivery.objects.create(
        message=message,
        number=message.attempts,
        started_at=result.started_at,
        milliseconds=result.milliseconds,
        response_status=result.status,
        response=result.response,
        error=result.error,
    )
    waiting = Message.objects.filter(pk=message.pk, status=Message.Status.WAITING)
    if result.is_success:
        waiting.update(status=Message.Status.DELIVERED, finished_at=now)
        Endpoint.objects.filter(pk=message.endpoint_id, failing_since__isnull=False).update(
            failing_since=None
        )
        return
    # If the claim had expired and another worker claimed the message, that worker schedules the next attempt.
    ours = waiting.filter(attempts=message.attempts)
    if message.attempts >= MAX_ATTEMPTS:
        ours.update(status=Message.Status.GIVEN_UP, finished_at=now)
    else:
        ours.update(next_attempt_at=now + pause_after(message.attempts))
    _note_failure(message.endpoint_id, result, now)


def pause_after(attempts: int) -> timedelta:
    return _PAUSES[attempts - 1] * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - guards nothing


def _note_failure(endpoint_id: int, result: Result, now: datetime) -> None:
    Endpoint.objects.filter(pk=endpoint_id, failing_since=None).update(failing_since=now)
    failing_for = timedelta(days=settings.WEBHOOK_DISABLE_DAYS)
    by = None
    if result.status == _GONE:
        by = Endpoint.DisabledBy.GONE
    elif Endpoint.objects.filter(pk=endpoint_id, failing_since__lte=now - failing_for).exists():
        by = Endpoint.DisabledBy.FAILING
    if by and endpoints.disable(endpoint_id, by=by, now=now):
        logger.warning("webhook endpoint %s was disabled: %s", endpoint_id, by.label)
