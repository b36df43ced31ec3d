"""A Stripe that accepts connections and says nothing keeps no caller waiting for long."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from payments.errors import BillingUnavailable
from payments.stripe import requests
from payments.stripe.sdk import StripeBillingClient


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[StripeBillingClient]:
    """A client of it, for which two threads may wait."""
    monkeypatch.setattr(requests, "_PATIENCE_SECONDS", 0.3)
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield StripeBillingClient(
            secret_key="sk_test_silent",
            webhook_secrets=[],
            api_base=f"http://127.0.0.1:{server.getsockname()[1]}",
            timeout_seconds=1,
            product_id="",
            places=2,
        )


def test_few_threads_wait_for_it_and_then_none(silent: StripeBillingClient) -> None:
    def call(_: int) -> float:
        began = time.monotonic()
        with pytest.raises(BillingUnavailable) as refusal:
            silent.retrieve_invoice(invoice_id="in_1")
        assert refusal.value.retry_after
        return time.monotonic() - began

    with ThreadPoolExecutor(12) as threads:
        seconds = sorted(threads.map(call, range(12)))
    assert sum(one > 0.9 for one in seconds) == 2
    assert call(0) < 0.2
