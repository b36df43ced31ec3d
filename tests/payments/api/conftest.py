"""A wallet that calls the payment paths over HTTP with a real token, and a check that nothing changes on an error."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from tests.payments.api.spec import CANCEL, UPSERT
from tests.payments.rows import all_rows
from tests.payments.stripe_accounts import DoubleAccount
from tests.relay.api.conftest import ApiResponse, Wallet, anonymous, wallet_of
from users.models import User

__all__ = ["anonymous"]


@pytest.fixture
def wallet(user: User) -> Wallet:
    """The wallet of the user."""
    return wallet_of(user)


def upsert(wallet: Wallet, cost: Any, **changes: Any) -> ApiResponse:
    """Ask for a subscription."""
    return wallet.post(UPSERT, {"subscriptionCost": cost, **changes})


def cancel(wallet: Wallet, immediately: Any) -> ApiResponse:
    """Ask for its end, with a body."""
    return delete(wallet, {"cancelImmediately": immediately})


def delete(wallet: Wallet, body: Any = None, query: str = "") -> ApiResponse:
    """Send a DELETE with a body, a query, both or neither."""
    if body is None:
        return wallet.send("delete", CANCEL + query)
    return wallet.send("delete", CANCEL + query, data=body, content_type="application/json")


NothingHappens = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def nothing_happens(double: DoubleAccount) -> NothingHappens:
    """Return a context in which no row may change, and nothing be ordered at Stripe."""

    @contextmanager
    def watch() -> Iterator[None]:
        before = all_rows()
        with double.frozen_log() as orders:
            yield
        assert orders == []
        assert all_rows() == before

    return watch
