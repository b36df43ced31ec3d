"""The spans of one relay call, from its request to its settlement, make one trace."""

import secrets
from collections.abc import Callable, Iterator

import pytest
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gateway.common.errors import DomainError
from gateway.web import tracing
from gateway.web.middleware import requests_traced
from gateway.web.spans import Span
from relay.models import RelayTransaction
from tests.gateway.test_wiring import settings_with
from tests.relay.chain import Chain
from tests.relay.conftest import Accept
from tests.relay.workers import broadcast_all, track


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    """What spans are sent to, in place of a collector."""
    spans = InMemorySpanExporter()
    tracing.use(SimpleSpanProcessor(spans))
    yield spans
    tracing.use(None)


def requested(rf: RequestFactory, accept: Callable[..., object], **call: object) -> None:
    """Hand in a call as the middleware sees it."""

    def answer(request: HttpRequest) -> HttpResponse:
        try:
            accept(**call)
        except DomainError as refusal:
            return HttpResponse(status=refusal.status)
        return HttpResponse()

    requests_traced(answer)(rf.post("/api/relay/execute"))


@pytest.mark.django_db(transaction=True)
def test_a_call_is_one_trace_in_all_processes(
    exporter: InMemorySpanExporter, rf: RequestFactory, accept: Accept, chain: Chain
) -> None:
    requested(rf, accept)
    row = RelayTransaction.objects.get()
    broadcast_all()
    chain.mine(settings.CONFIRMATIONS)
    assert track() == 1

    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert {span.context.trace_id for span in spans.values()} == {int(row.digest[2:34], 16)}
    call, request = spans["relay call"], spans["POST /api/relay/execute"]
    assert {name: span.parent and span.parent.span_id for name, span in spans.items()} == {
        "relay call": None,
        "POST /api/relay/execute": call.context.span_id,
        "rows and chain": request.context.span_id,
        "hold, signature and rows": request.context.span_id,
        "broadcast": call.context.span_id,
        "block": call.context.span_id,
        "settlement": call.context.span_id,
    }
    assert (call.attributes or {})["relay.transaction_hash"] == row.transaction_hash
    assert request.attributes == {"http.response.status_code": 200, "relay.request_id": ""}
    for first, second in (("broadcast", "block"), ("block", "settlement")):
        assert spans[first].end_time == spans[second].start_time
    assert all((span.start_time or 0) <= (span.end_time or 0) for span in spans.values())


@pytest.mark.django_db
def test_a_refused_request_is_a_failed_span_of_its_own(
    exporter: InMemorySpanExporter, rf: RequestFactory, accept: Accept
) -> None:
    requested(rf, accept, ahead=3000)
    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert set(spans) == {"POST /api/relay/execute", "rows and chain"}
    request = spans["POST /api/relay/execute"]
    assert (request.parent, request.status.is_ok) == (None, False)


def test_other_requests_are_not_traced(exporter: InMemorySpanExporter, rf: RequestFactory) -> None:
    requests_traced(lambda _: HttpResponse())(rf.get("/api/service"))
    assert exporter.get_finished_spans() == ()


def test_all_processes_choose_the_same_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "TRACING_PERCENT", 25)
    digests = [f"0x{secrets.token_hex(32)}" for _ in range(400)]
    chosen = []
    for _ in range(2):
        spans = InMemorySpanExporter()
        tracing.use(SimpleSpanProcessor(spans))
        for digest in digests:
            tracing.send_call(digest, Span("one", 1.0, 2.0))
        chosen.append([span.context.trace_id for span in spans.get_finished_spans()])
    tracing.use(None)
    assert chosen[0] == chosen[1]
    # Of 400, a quarter: more than six standard deviations away is not chance.
    assert 48 < len(chosen[0]) < 152


def test_disabled_tracing_costs_nothing() -> None:
    assert not tracing.is_on()
    tracing.start()
    assert not tracing.is_on()
    middleware = "gateway.web.middleware.requests_traced"
    assert middleware not in settings_with().MIDDLEWARE
    assert settings_with(TRACING_OTLP_URL="http://collector:4318/v1/traces").MIDDLEWARE[1] == middleware
