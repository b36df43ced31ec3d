"""A billing client that does the real thing, and dies, stalls or meddles around it."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from payments.stripe import get_billing_client, set_billing_client
from payments.stripe.client import BillingClient


class Killed(BaseException):
    """The process is gone: no handler of ours catches this."""


class MeddlingClient:
    """Passes every call on; `before` and `after` are called around those of one method."""

    def __init__(self, real: BillingClient) -> None:
        self.real = real
        self.asked: Counter[str] = Counter()
        self.before: dict[str, Callable[[], None]] = {}
        self.after: dict[str, Callable[[], None]] = {}

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Meddle with nothing inside the block."""
        before, after = self.before, self.after
        self.before, self.after = {}, {}
        try:
            yield
        finally:
            self.before, self.after = before, after

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.real, name)

        def call(**arguments: Any) -> Any:
            self.asked[name] += 1
            self.before.get(name, _nothing)()
            answer = method(**arguments)
            self.after.get(name, _nothing)()
            return answer

        return call


@contextmanager
def meddling() -> Iterator[MeddlingClient]:
    """Put a meddling client between the service and Stripe inside the block."""
    client = MeddlingClient(get_billing_client())
    set_billing_client(cast("BillingClient", client))
    try:
        yield client
    finally:
        set_billing_client(client.real)


@contextmanager
def killed_after(method: str) -> Iterator[None]:
    """Let the process die once Stripe has answered this call."""
    with meddling() as client:
        client.after[method] = _die
        try:
            yield
        except Killed:
            return
    raise AssertionError(f"{method} was not called")


@contextmanager
def killed_before(method: str) -> Iterator[None]:
    """Let the process die before it asks Stripe for this."""
    with meddling() as client:
        client.before[method] = _die
        try:
            yield
        except Killed:
            return
    raise AssertionError(f"{method} was not called")


def once(act: Callable[[], object]) -> Callable[[], None]:
    """Return a hook that acts the first time alone."""
    left = [act]

    def hook() -> None:
        while left:
            left.pop()()

    return hook


def _die() -> None:
    raise Killed


def _nothing() -> None:
    """Let the call pass."""
