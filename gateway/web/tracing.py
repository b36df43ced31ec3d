"""
Traces of relay calls for OpenTelemetry: one trace for each call, joined from every process that worked on it.

No process stores anything for a trace. The ids of the trace and of its root span are parts of the call's digest, which
every process knows. A process records when a step began and ended, and afterwards passes the span to OpenTelemetry's
tracer. Without TRACING_OTLP_URL, no part of OpenTelemetry is imported.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from gateway.web.spans import Span

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

    from gateway.web.call_tracer import CallTracer

_tracer: "CallTracer | None" = None
_request: ContextVar["Request | None"] = ContextVar("traced_request", default=None)


def start() -> None:
    """
    Export spans from now on, if TRACING_OTLP_URL is set.

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
    """Hand finished spans to this processor; with None, stop tracing."""
    global _tracer  # noqa: PLW0603
    if processor is None:
        _tracer = None
        return
    from gateway.web.call_tracer import CallTracer

    _tracer = CallTracer(processor, percent=settings.TRACING_PERCENT)


def is_on() -> bool:
    return _tracer is not None


@dataclass
class Request:
    """A request in progress, and the relay call that it carries, once that is known."""

    span: Span
    digest: str = ""
    is_accepted: bool = False
    # When the previous step ended.
    stepped: float = 0.0

    def passed(self, step: str, *, is_last: bool = False) -> None:
        """Record the end of a step of accepting the call; after the last one the call is accepted. Thread-safe."""
        started, self.stepped, self.is_accepted = self.stepped, time.time(), is_last
        self.span.children.append(Span(step, started, self.stepped))


@contextmanager
def request(name: str) -> Iterator[Span]:
    """Export a span of the request when the block ends, if the request carried a relay call."""
    traced = Request(Span(name, time.time(), 0.0))
    token = _request.set(traced)
    try:
        yield traced.span
    finally:
        _request.reset(token)
        traced.span.ended, traced.span.failed = time.time(), not traced.is_accepted
        if traced.digest and _tracer is not None:
            _tracer.send_request(traced.digest, traced.span, is_accepted=traced.is_accepted)


def identified(digest: str) -> Request | None:
    """Set the relay call of the request, and start its first step; return the request if it is traced."""
    traced = _request.get()
    if traced is not None:
        traced.digest, traced.stepped = digest, time.time()
    return traced


def send_call(digest: str, span: Span) -> None:
    """Export the root span of the call with this digest, and the spans below it."""
    if _tracer is not None:
        _tracer.send_call(digest, span)
