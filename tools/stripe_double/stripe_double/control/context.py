"""The context of controls, and reading of their JSON bodies."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stripe_double.account import Account
from stripe_double.api import RequestLog
from stripe_double.errors import InvalidParameters, ResourceMissing
from stripe_double.faults import Faults
from stripe_double.scheduler import Scheduler
from stripe_double.store import Resource


@dataclass(frozen=True)
class Context:
    """The state that a control may change."""

    account: Account
    scheduler: Scheduler
    faults: Faults
    log: RequestLog


Body = dict[str, Any]
Control = Callable[[Context, Body], Any]
Controls = dict[tuple[str, str], Control]


def find_in_body(context: Context, kind: str, body: Body) -> Resource:
    """Return the resource of this kind named in the body."""
    identifier = required(body, kind)
    resource = context.account.store.get(kind, identifier)
    if resource is None:
        raise ResourceMissing(kind, identifier, param=kind)
    return resource


def required(body: Body, name: str) -> Any:
    """Return a required value of the body."""
    if name not in body:
        raise InvalidParameters(f"Missing: {name}", code="parameter_missing", param=name)
    return body[name]
