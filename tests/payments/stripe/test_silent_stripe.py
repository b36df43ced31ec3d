"""A Stripe that accepts connections and never responds delays callers only briefly."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
import stripe

from payments.errors import BillingUnavailable
from payments.stripe import requests
from payments.stripe.sdk import StripeBillingClient


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[StripeBillingClient]:
    """A client of it, for which two threads may wait."""
    monkeypatch.setattr(requests, "PATIENCE_SECONDS", 0.3)
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield StripeBillingClient(
            secret_key="sk_test_silent",
            webhook_secrets=[],
            api_base=f"http://127.0.0.1:{server.getsockname()[1]}",
            timeout_seconds=1,
            product_id="",
            places=2,
        )


def test_few_threads_wait_for_it_and_then_none(
    silent: StripeBillingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, thread_ids = stripe.RequestsClient.request, list[int]()

    def noted(*arguments: Any, **options: Any) -> Any:
        thread_ids.append(threading.get_ident())
        return request(*arguments, **options)

    monkeypatch.setattr(stripe.RequestsClient, "request", noted)

    def call(_: int) -> None:
        with pytest.raises(BillingUnavailable) as refusal:
            silent.retrieve_invoice(invoice_id="in_1")
        assert refusal.value.retry_after

    start = threading.Barrier(12)

    def call_with_others(number: int) -> None:
        start.wait()
        call(number)

    with ThreadPoolExecutor(12) as threads:
        list(threads.map(call_with_others, range(12)))
    # Two may wait. Where the machine stalled, two more took the places of the first who gave up.
    assert 1 <= len(set(thread_ids)) <= 4
    before = len(thread_ids)
    call(0)
    assert len(thread_ids) == before
