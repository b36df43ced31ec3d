"""
Traces of relay calls for OpenTelemetry: what became of one call, in every process that had to do with it.

Nothing is stored for them. The ids of a call's trace and of its outermost span are parts of the call's digest, which
every process knows, and a span is sent when it is over, with the times that it had. Without TRACING_OTLP_URL nothing
of OpenTelemetry is imported.
"""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

_processor: "SpanProcessor | None" = None
_request: ContextVar["Request | None"] = ContextVar("traced_request", default=None)
Attributes = dict[str, str | int | bool]


def start() -> None:
    """
    Send spans from now on, where the settings say so.

    Raises:
        ImproperlyConfigured: the packages of requirements/watching.txt are not installed.
    """
    if not settings.TRACING_OTLP_URL or is_on():
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ImproperlyConfigured(
            "TRACING_OTLP_URL needs the packages of requirements/watching.txt."
        ) from error
    use(BatchSpanProcessor(OTLPSpanExporter(endpoint=settings.TRACING_OTLP_URL)))


def use(processor: "SpanProcessor | None") -> None:
    """Hand spans to this processor, or with None to nobody."""
    global _processor  # noqa: PLW0603
    _processor = processor


def is_on() -> bool:
    return _processor is not None


@dataclass
class Span:
    """Something that took its time; in unix seconds."""

    name: str
    started: float
    ended: float
    attributes: Attributes = field(default_factory=dict)
    failed: bool = False
    id: int = field(default_factory=lambda: secrets.randbits(64) or 1)
    children: list["Span"] = field(default_factory=list)


@dataclass
class Request:
    """A request under way, and the relay call that it turned out to be about."""

    span: Span
    digest: str = ""
    is_accepted: bool = False
    # When the last of its steps ended.
    stepped: float = 0.0

    def passed(self, step: str, *, is_last: bool = False) -> None:
        """Say that a step of accepting the call is over; with the last one the call is accepted. For any thread."""
        started, self.stepped, self.is_accepted = self.stepped, time.time(), is_last
        self.span.children.append(Span(step, started, self.stepped))


@contextmanager
def request(name: str) -> Iterator[Span]:
    """Send a span of the request when the block ends, if it was about a relay call."""
    traced = Request(Span(name, time.time(), 0.0))
    token = _request.set(traced)
    try:
        yield traced.span
    finally:
        _request.reset(token)
        traced.span.ended, traced.span.failed = time.time(), not traced.is_accepted
        if traced.digest:
            send(traced.digest, [traced.span], within_call=traced.is_accepted)


def identified(digest: str) -> Request | None:
    """Say which relay call the request is about, and return it if it is traced; its first step begins."""
    traced = _request.get()
    if traced is not None:
        traced.digest, traced.stepped = digest, time.time()
    return traced


def send(digest: str, spans: list[Span], *, within_call: bool = True) -> None:
    """Send spans of the call with this digest, below its outermost one or beside it."""
    if _processor is not None and int(digest[-8:], 16) % 100 < settings.TRACING_PERCENT:
        for span in spans:
            _send(_trace_id(digest), call_span_id(digest) if within_call else None, span)


def call_span_id(digest: str) -> int:
    """Return the id of the outermost span of a call."""
    return int(digest[34:50], 16) or 1


def _trace_id(digest: str) -> int:
    return int(digest[2:34], 16) or 1


def _send(trace_id: int, parent_id: int | None, span: Span) -> None:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

    def context(span_id: int) -> Any:
        flags = TraceFlags(TraceFlags.SAMPLED)
        return SpanContext(trace_id, span_id, is_remote=False, trace_flags=flags)

    is_outermost = parent_id is None or span.id == parent_id
    finished = ReadableSpan(
        span.name,
        context=context(span.id),
        parent=None if is_outermost else context(parent_id or 0),
        resource=Resource.create({"service.name": "credit-relay-gateway"}),
        attributes=span.attributes,
        status=Status(StatusCode.ERROR if span.failed else StatusCode.UNSET),
        start_time=int(span.started * 1e9),
        end_time=int(span.ended * 1e9),
    )
    if _processor is not None:
        _processor.on_end(finished)
    for child in span.children:
        _send(trace_id, span.id, child)


def between(name: str, started: datetime, ended: datetime, **attributes: str | int | bool) -> Span:
    """Return a span between two moments of rows."""
    return Span(name, started.timestamp(), ended.timestamp(), attributes)
