"""A browser of staff, and rows to look at."""

from datetime import datetime

import pytest
from django.test import Client

from relay.models import Attempt, RelayTransaction
from tests.factories import make
from tests.gateway.metrics.conftest import scrape, token
from tests.staff import log_in_staff

__all__ = ["mined", "scrape", "staff", "token"]


@pytest.fixture
def staff(client: Client, db: None) -> Client:
    """Return a browser of a superuser who has shown a second factor."""
    log_in_staff(client)
    return client


def mined(call: RelayTransaction, *, at: datetime, gas: int, price_wei: int) -> Attempt:
    """Give a relay transaction an attempt whose block was first seen at that moment."""
    return make(
        Attempt,
        relay_transaction=call,
        is_mined=True,
        transaction_hash=call.transaction_hash,
        gas_limit=gas,
        max_fee_per_gas_wei=price_wei,
        gas_used=gas,
        effective_gas_price_wei=price_wei,
        created_at=call.created_at,
        mined_at=at,
    )
