"""OpenTelemetry's tracer, with the ids of relay calls. Only processes that trace import this module."""

from contextvars import ContextVar

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from gateway.web.spans import Span

# The digest of the next span's trace, and whether it is the root span.
_next: ContextVar[tuple[str, bool]] = ContextVar("next_span")


class _CallIds(RandomIdGenerator):
    """Derives the trace id and the root span's id from the call's digest; other span ids are random."""

    def generate_trace_id(self) -> int:
        digest, _ = _next.get()
        return _trace_id(digest)

    def generate_span_id(self) -> int:
        digest, is_root = _next.get()
        return _root_span_id(digest) if is_root else super().generate_span_id()


class CallTracer:
    """Creates finished spans of relay calls. Every process samples the same calls, by trace id."""

    def __init__(self, processor: SpanProcessor, *, percent: int) -> None:
        provider = TracerProvider(
            sampler=TraceIdRatioBased(percent / 100),
            resource=Resource.create({"service.name": "credit-relay-gateway"}),
            id_generator=_CallIds(),
            # An unresponsive collector would delay the exit of the process by up to 10 s.
            shutdown_on_exit=False,
        )
        provider.add_span_processor(processor)
        self._tracer = provider.get_tracer("gateway")

    def send_call(self, digest: str, span: Span) -> None:
        """Send the root span of the call's trace."""
        self._send(digest, span, Context(), is_root=True)

    def send_request(self, digest: str, span: Span, *, is_accepted: bool) -> None:
        """Send the span of a request: below the call's root span, or beside it if the call was refused."""
        root = SpanContext(
            _trace_id(digest),
            _root_span_id(digest),
            is_remote=True,
            trace_flags=TraceFlags(TraceFlags.SAMPLED),
        )
        parent = set_span_in_context(NonRecordingSpan(root), Context()) if is_accepted else Context()
        self._send(digest, span, parent)

    def _send(self, digest: str, span: Span, parent: Context, *, is_root: bool = False) -> None:
        _next.set((digest, is_root))
        sent = self._tracer.start_span(
            span.name, parent, attributes=span.attributes, start_time=int(span.started * 1e9)
        )
        if span.failed:
            sent.set_status(StatusCode.ERROR)
        for child in span.children:
            self._send(digest, child, set_span_in_context(sent, parent))
        sent.end(int(span.ended * 1e9))


def _trace_id(digest: str) -> int:
    return int(digest[2:34], 16) or 1


def _root_span_id(digest: str) -> int:
    return int(digest[34:50], 16) or 1
