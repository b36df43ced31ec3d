"""Requests to the API: seeing them, and answering them badly."""

from typing import Any

from devstack.stripe.control.desk import Body, Desk
from devstack.stripe.wire.faults import Fault, Kind


def list_requests(desk: Desk, _body: Body) -> Any:
    """Return what the API was asked, oldest first."""
    return {"requests": desk.log.entries()}


def clear_requests(desk: Desk, _body: Body) -> Any:
    """Begin the log anew."""
    desk.log.clear()
    return {}


def fail(desk: Desk, body: Body) -> Any:
    """Answer the next requests with 409, 429 or 500 before anything is done."""
    return _add(desk, "fail", body)


def error_after_commit(desk: Desk, body: Body) -> Any:
    """Do the work of the next requests and answer 500; with `saved` the key keeps answering that."""
    return _add(desk, "error_after_commit", body)


def timeout_after_commit(desk: Desk, body: Body) -> Any:
    """Do the work of the next requests and break the connection off, after some seconds of silence."""
    return _add(desk, "timeout_after_commit", body)


def slow(desk: Desk, body: Body) -> Any:
    """Begin the next requests some seconds late."""
    return _add(desk, "slow", body)


def behave(desk: Desk, _body: Body) -> Any:
    """Answer well again."""
    desk.faults.clear()
    return {}


def _add(desk: Desk, kind: Kind, body: Body) -> Any:
    desk.faults.add(
        Fault(
            kind,
            left=body.get("count", 1),
            method=body.get("method"),
            path=body.get("path"),
            status=int(body.get("status", 500)),
            seconds=float(body.get("seconds", 0)),
            saved=bool(body.get("saved", False)),
        )
    )
    return {}


CONTROLS = {
    ("GET", "requests"): list_requests,
    ("DELETE", "requests"): clear_requests,
    ("POST", "requests/fail"): fail,
    ("POST", "requests/error_after_commit"): error_after_commit,
    ("POST", "requests/timeout_after_commit"): timeout_after_commit,
    ("POST", "requests/slow"): slow,
    ("POST", "requests/behave"): behave,
}
