"""Everything that a control may reach."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from devstack.stripe.runner import Runner
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing
from devstack.stripe.wire.faults import Faults
from devstack.stripe.wire.refusals import Malformed, NotFound
from devstack.stripe.wire.request_log import RequestLog


@dataclass(frozen=True)
class Desk:
    """The account, its time, and the ways to disturb both."""

    account: Account
    runner: Runner
    faults: Faults
    log: RequestLog


Body = dict[str, Any]
Control = Callable[[Desk, Body], Any]


def wanted(desk: Desk, kind: str, body: Body, name: str | None = None) -> Thing:
    """Return the thing that the body names."""
    identifier = needed(body, name or kind)
    thing = desk.account.store.get(kind, identifier)
    if thing is None:
        raise NotFound(kind, identifier, param=name or kind)
    return thing


def needed(body: Body, name: str) -> Any:
    """Return a value that the body must have."""
    if name not in body:
        raise Malformed(f"Missing: {name}", code="parameter_missing", param=name)
    return body[name]
