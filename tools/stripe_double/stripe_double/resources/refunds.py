"""Refunds: succeeded, pending or failed."""

from typing import Any

from stripe_double.account import Account, find, find_param
from stripe_double.errors import InvalidRequest
from stripe_double.events import emit, emit_changes
from stripe_double.parameters import Enum, Integer, Metadata, String, takes
from stripe_double.resources.cards import card_of
from stripe_double.resources.charges import record_balance_transaction
from stripe_double.resources.disputes import net_amount
from stripe_double.resources.fraud_warnings import update_warnings
from stripe_double.routing import Route, list_route, retrieve_route
from stripe_double.store import Resource, new_id

_PATH = "/v1/refunds"
_SETTLE_SECONDS = 60


def create_refund(
    account: Account,
    charge: Resource,
    *,
    amount: int | None,
    reason: str | None = None,
    metadata: dict[str, str] | None = None,
) -> Resource:
    """Refund the amount, or the rest of the charge."""
    unrefunded = charge["amount"] - charge["amount_refunded"]
    _require_refundable(account, charge, amount, unrefunded)
    method = account.store.get("payment_method", charge["payment_method"])
    outcome = card_of(method).refund if method else "succeeded"
    refund = {
        "object": "refund",
        "id": new_id("re"),
        **dict.fromkeys(("receipt_number", "source_transfer_reversal", "transfer_reversal")),
        "amount": amount or unrefunded,
        "charge": charge["id"],
        "created": account.now,
        "currency": charge["currency"],
        "customer": charge["customer"],
        "customer_account": None,
        "destination_details": {"card": {"type": "refund"}, "type": "card"},
        "metadata": metadata or {},
        "payment_intent": charge["payment_intent"],
        "payment_method": charge["payment_method"],
        "reason": reason,
        "status": "pending" if outcome == "pending" else "succeeded",
        "_settles_at": account.now + _SETTLE_SECONDS if outcome != "succeeded" else None,
    }
    transaction = record_balance_transaction(account, "refund", refund["id"], charge, -refund["amount"])
    refund["balance_transaction"] = transaction["id"]
    emit(account, "refund.created", account.add(refund))
    _add_to_refunded(charge, refund["amount"])
    emit(account, "charge.refunded", charge)
    update_warnings(account, charge)
    return refund


def settle_refund(account: Account, refund: Resource) -> None:
    """Complete a pending refund: it succeeds or fails, depending on the card."""
    if refund["status"] == "succeeded":
        fail_refund(account, refund, reason="expired_or_canceled_card")
        return
    refund.update(status="succeeded", _settles_at=None)
    emit(account, "refund.updated", refund)


def fail_refund(account: Account, refund: Resource, *, reason: str) -> None:
    """Fail a refund and return its money to the account."""
    if refund["status"] not in ("pending", "succeeded"):
        raise InvalidRequest("This refund cannot fail any more.", param="refund")
    charge = account.store.get("charge", refund["charge"]) or {}
    transaction = record_balance_transaction(
        account, "refund_failure", refund["id"], charge, refund["amount"]
    )
    refund.update(
        status="failed",
        failure_reason=reason,
        failure_balance_transaction=transaction["id"],
        _settles_at=None,
    )
    with emit_changes(account, "charge.updated", charge):
        _add_to_refunded(charge, -refund["amount"])
    update_warnings(account, charge)
    for event_type in ("refund.updated", "charge.refund.updated", "refund.failed"):
        emit(account, event_type, refund)


def find_paid_charge(account: Account, params: dict[str, Any]) -> Resource:
    """Return the charge that `charge` names, or the one that paid the `payment_intent`."""
    if "charge" in params:
        return find_param(account, "charge", params["charge"], "charge")
    if "payment_intent" not in params:
        message = "One of the following params should be provided for this request: payment_intent or charge."
        raise InvalidRequest(message, code="parameter_missing", param="charge")
    intent = find_param(account, "payment_intent", params["payment_intent"], "payment_intent")
    if intent["status"] != "succeeded":
        message = f"This PaymentIntent ({intent['id']}) does not have a successful charge to refund."
        raise InvalidRequest(message, param="payment_intent")
    return find(account, "charge", intent["latest_charge"])


def create(account: Account, params: dict[str, Any]) -> Resource:
    """Refund a charge, whole or in part."""
    charge = find_paid_charge(account, params)
    details = {name: params.get(name) for name in ("amount", "reason", "metadata")}
    return create_refund(account, charge, **details)


def _add_to_refunded(charge: Resource, amount: int) -> None:
    charge["amount_refunded"] += amount
    charge["refunded"] = charge["amount_refunded"] == charge["amount"]


def _require_refundable(account: Account, charge: Resource, amount: int | None, unrefunded: int) -> None:
    if charge["status"] != "succeeded":
        raise InvalidRequest("This charge was not paid, so it cannot be refunded.", param="charge")
    disputes = account.store.all("dispute")
    if any(dispute["charge"] == charge["id"] and net_amount(dispute) < 0 for dispute in disputes):
        message = f"Charge {charge['id']} has been charged back; cannot issue a refund."
        raise InvalidRequest(message, code="charge_disputed", param="charge")
    if unrefunded <= 0:
        message = f"Charge {charge['id']} has already been refunded."
        raise InvalidRequest(message, code="charge_already_refunded")
    if amount is not None and amount > unrefunded:
        message = f"Refund amount ({amount}) is greater than unrefunded amount on charge ({unrefunded})"
        raise InvalidRequest(message, param="amount")


_CREATE = takes(
    amount=Integer(minimum=1),
    charge=String(),
    metadata=Metadata(),
    payment_intent=String(),
    reason=Enum(("duplicate", "fraudulent", "requested_by_customer")),
)
ROUTES = (
    Route("POST", _PATH, create, _CREATE),
    list_route(_PATH, "refund", charge=String(), payment_intent=String()),
    retrieve_route(_PATH, "refund"),
)
