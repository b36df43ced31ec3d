"""Refunds."""

from typing import Any

from devstack.stripe.billing.refunding import refund_charge
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing
from devstack.stripe.wire.finding import find, merge_metadata, named
from devstack.stripe.wire.lists import page
from devstack.stripe.wire.parameters import METADATA, PAGE, takes
from devstack.stripe.wire.refusals import Invalid
from devstack.stripe.wire.routes import Route
from devstack.stripe.wire.shapes import Choice, Integer, Text

_PATH = "/v1/refunds"


def create(account: Account, params: dict[str, Any]) -> Thing:
    """Refund a charge, whole or in part."""
    return refund_charge(
        account,
        paid_charge(account, params),
        amount=params.get("amount"),
        reason=params.get("reason"),
        metadata=params.get("metadata") or {},
    )


def paid_charge(account: Account, params: dict[str, Any]) -> Thing:
    """Return the charge that is named, or the one that paid the intent that is named."""
    if "charge" in params:
        return named(account, "charge", params["charge"], "charge")
    if "payment_intent" not in params:
        message = "One of the following params should be provided for this request: payment_intent or charge."
        raise Invalid(message, code="parameter_missing", param="charge")
    intent = named(account, "payment_intent", params["payment_intent"], "payment_intent")
    if intent["status"] != "succeeded":
        message = f"This PaymentIntent ({intent['id']}) does not have a successful charge to refund."
        raise Invalid(message, param="payment_intent")
    return find(account, "charge", intent["latest_charge"])


def retrieve(account: Account, _params: dict[str, Any], identifier: str) -> Thing:
    """Return a refund."""
    return find(account, "refund", identifier)


def update(account: Account, params: dict[str, Any], identifier: str) -> Thing:
    """Change a refund's metadata."""
    refund = find(account, "refund", identifier)
    with account.telling("refund.updated", refund):
        if "metadata" in params:
            merge_metadata(refund, params["metadata"])
    return refund


def list_all(account: Account, params: dict[str, Any]) -> Thing:
    """Return a page of refunds."""
    found = account.store.all("refund")
    for name in ("charge", "payment_intent"):
        if name in params:
            found = [item for item in found if item[name] == params[name]]
    return page(found, params, _PATH)


_CREATE = takes(
    amount=Integer(least=1),
    charge=Text(),
    metadata=METADATA,
    payment_intent=Text(),
    reason=Choice(("duplicate", "fraudulent", "requested_by_customer")),
)
ROUTES = (
    Route("POST", _PATH, create, _CREATE),
    Route("GET", _PATH, list_all, takes(**PAGE, charge=Text(), payment_intent=Text())),
    Route("GET", f"{_PATH}/{{id}}", retrieve, takes()),
    Route("POST", f"{_PATH}/{{id}}", update, takes(metadata=METADATA)),
)
