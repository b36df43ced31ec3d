"""
The trace of a relay call (`gateway.web.tracing`): spans from the times in its rows, exported when it is settled.

The web process has already exported a span of the request. The call's digest links the two.
"""

from collections.abc import Iterator, Sequence

from gateway.web import tracing
from gateway.web.spans import Attributes, Span, between
from relay.models import Attempt, RelayTransaction


def send_settled(hold_ids: Sequence[int]) -> None:
    """Export the spans of the calls with these holds."""
    settled = RelayTransaction.objects.filter(hold__in=hold_ids, settled_at__isnull=False)
    for call in settled.prefetch_related("attempts").defer("payload", "signature"):
        tracing.send_call(call.digest, _span(call))


def _span(call: RelayTransaction) -> Span:
    attempts = sorted(call.attempts.all(), key=lambda attempt: attempt.sequence)
    settled_at = call.settled_at or call.created_at
    mined_at = max((attempt.mined_at for attempt in attempts if attempt.mined_at), default=None)
    span = between("relay call", call.created_at, settled_at)
    span.failed = call.status != RelayTransaction.Status.SUCCESS
    span.attributes = {
        "relay.transaction_hash": call.transaction_hash,
        "relay.status": call.status,
        "relay.failure_code": call.failure_code,
        "relay.generation": call.generation,
        "relay.request_id": call.request_id,
    }
    span.children = [child for attempt in attempts for child in _of_attempt(attempt)]
    if mined_at:
        span.children.append(between("settlement", mined_at, settled_at))
    return span


def _of_attempt(attempt: Attempt) -> Iterator[Span]:
    named: Attributes = {
        "relay.transaction_hash": attempt.transaction_hash,
        "relay.attempt": attempt.sequence,
        "relay.kind": attempt.kind,
        "relay.node_message": attempt.node_message,
    }
    if attempt.first_sent_at:
        yield between("broadcast", attempt.created_at, attempt.first_sent_at, **named)
        if attempt.mined_at:
            yield between("block", attempt.first_sent_at, attempt.mined_at, **named)
