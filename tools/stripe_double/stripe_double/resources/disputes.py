"""Disputes of charges by the card holder's bank."""

from stripe_double.account import Account
from stripe_double.errors import InvalidRequest
from stripe_double.events import emit, emit_changes
from stripe_double.parameters import String
from stripe_double.resources.charges import record_balance_transaction
from stripe_double.resources.fraud_warnings import update_warnings
from stripe_double.routing import list_route, retrieve_route
from stripe_double.store import Resource, new_id

_PATH = "/v1/disputes"
_FEE = 1500
_WEEK = 7 * 86_400
_OPEN = ("needs_response", "under_review")
_EVIDENCE = (
    "access_activity_log", "billing_address", "cancellation_policy", "cancellation_policy_disclosure",
    "cancellation_rebuttal", "customer_communication", "customer_email_address", "customer_name",
    "customer_purchase_ip", "customer_signature", "duplicate_charge_documentation", "duplicate_charge_explanation",
    "duplicate_charge_id", "product_description", "receipt", "refund_policy", "refund_policy_disclosure",
    "refund_refusal_explanation", "service_date", "service_documentation", "shipping_address", "shipping_carrier",
    "shipping_date", "shipping_documentation", "shipping_tracking_number", "uncategorized_file",
    "uncategorized_text",
)  # fmt: skip


def open_dispute(
    account: Account, charge: Resource, *, reason: str, amount: int | None = None, withdraw: bool = True
) -> Resource:
    """Open a dispute of a paid charge; withdraw the funds at once unless `withdraw` is false."""
    if charge["status"] != "succeeded" or charge["disputed"]:
        raise InvalidRequest("This charge cannot be disputed.", param="charge")
    amount = amount or charge["amount"] - charge["amount_refunded"]
    dispute = account.add(_new_dispute(account, charge, reason, amount))
    emit(account, "charge.dispute.created", dispute)
    with emit_changes(account, "charge.updated", charge):
        charge["disputed"] = True
    update_warnings(account, charge)
    if withdraw:
        withdraw_funds(account, dispute)
    return dispute


def withdraw_funds(account: Account, dispute: Resource) -> None:
    """Withdraw the disputed amount from the balance."""
    if net_amount(dispute) < 0:
        raise InvalidRequest("The funds of this dispute are withdrawn already.")
    _record_balance_transaction(account, dispute, -dispute["amount"], _FEE)
    emit(account, "charge.dispute.funds_withdrawn", dispute)


def reinstate_funds(account: Account, dispute: Resource, amount: int | None = None) -> None:
    """Reinstate the withdrawn amount on the balance, or a part of it."""
    withdrawn = -net_amount(dispute)
    if withdrawn <= 0 or (amount or 0) > withdrawn:
        raise InvalidRequest("The funds of this dispute are not withdrawn.")
    _record_balance_transaction(account, dispute, amount or withdrawn, -_FEE)
    emit(account, "charge.dispute.funds_reinstated", dispute)


def close_dispute(account: Account, dispute: Resource, *, won: bool, reinstate: bool = True) -> None:
    """Close the dispute; a won one reinstates withdrawn funds unless `reinstate` is false."""
    _require_open(dispute)
    dispute["status"] = "won" if won else "lost"
    emit(account, "charge.dispute.closed", dispute)
    if won and reinstate and net_amount(dispute) < 0:
        reinstate_funds(account, dispute)


def net_amount(dispute: Resource) -> int:
    """Return the dispute's sum of balance transactions without fees; negative while funds are withdrawn."""
    return sum(transaction["amount"] for transaction in dispute["balance_transactions"])


def _require_open(dispute: Resource) -> None:
    if dispute["status"] not in _OPEN:
        raise InvalidRequest("This dispute is already closed", param="dispute")


def _record_balance_transaction(account: Account, dispute: Resource, amount: int, fee: int) -> None:
    charge = account.store.get("charge", dispute["charge"]) or {}
    category = "dispute" if amount < 0 else "dispute_reversal"
    transaction = record_balance_transaction(
        account, "adjustment", dispute["id"], charge, amount, fee, category
    )
    dispute["balance_transactions"].append(dict(transaction))


def _new_dispute(account: Account, charge: Resource, reason: str, amount: int) -> Resource:
    brand = charge["payment_method_details"]["card"]["brand"]
    return {
        "object": "dispute",
        "id": new_id("du"),
        "amount": amount,
        "balance_transactions": [],
        "charge": charge["id"],
        "created": account.now,
        "currency": charge["currency"],
        "enhanced_eligibility_types": [],
        "evidence": {**dict.fromkeys(_EVIDENCE), "enhanced_evidence": {}},
        "evidence_details": {
            "due_by": account.now + _WEEK,
            "enhanced_eligibility": {},
            "has_evidence": False,
            "past_due": False,
            "submission_count": 0,
        },
        "is_charge_refundable": False,
        "livemode": False,
        "metadata": {},
        "payment_intent": charge["payment_intent"],
        "payment_method_details": {
            "card": {
                "brand": brand,
                "case_type": "chargeback",
                "network": brand,
                "network_reason_code": "10",
            },
            "type": "card",
        },
        "reason": reason,
        "status": "needs_response",
    }


ROUTES = (
    list_route(_PATH, "dispute", charge=String(), payment_intent=String()),
    retrieve_route(_PATH, "dispute"),
)
