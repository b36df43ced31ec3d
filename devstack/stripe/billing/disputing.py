"""Disputes: a bank takes a payment back, and may return it."""

from devstack.stripe.billing.charges import record_balance
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing, new_id
from devstack.stripe.wire.refusals import Invalid

_FEE = 1500
_WEEK = 7 * 86_400
_EVIDENCE = (
    "access_activity_log", "billing_address", "cancellation_policy", "cancellation_policy_disclosure",
    "cancellation_rebuttal", "customer_communication", "customer_email_address", "customer_name",
    "customer_purchase_ip", "customer_signature", "duplicate_charge_documentation", "duplicate_charge_explanation",
    "duplicate_charge_id", "product_description", "receipt", "refund_policy", "refund_policy_disclosure",
    "refund_refusal_explanation", "service_date", "service_documentation", "shipping_address", "shipping_carrier",
    "shipping_date", "shipping_documentation", "shipping_tracking_number", "uncategorized_file",
    "uncategorized_text",
)  # fmt: skip
OPEN = ("needs_response", "under_review")


def open_dispute(
    account: Account, charge: Thing, *, reason: str, amount: int | None = None, withdraw: bool = True
) -> Thing:
    """Open a dispute of a paid charge; the money leaves at once unless told otherwise."""
    if charge["status"] != "succeeded" or charge["disputed"]:
        raise Invalid("This charge cannot be disputed.", param="charge")
    dispute = account.add(
        _blank(account, charge, reason, amount or charge["amount"] - charge["amount_refunded"])
    )
    account.tell("charge.dispute.created", dispute)
    with account.telling("charge.updated", charge):
        charge["disputed"] = True
    if withdraw:
        withdraw_funds(account, dispute)
    return dispute


def withdraw_funds(account: Account, dispute: Thing) -> None:
    """Take the disputed amount from the balance."""
    if balance_of(dispute) < 0:
        raise Invalid("The funds of this dispute are withdrawn already.")
    _move(account, dispute, -dispute["amount"], _FEE)
    account.tell("charge.dispute.funds_withdrawn", dispute)


def reinstate_funds(account: Account, dispute: Thing) -> None:
    """Return the disputed amount to the balance."""
    if balance_of(dispute) >= 0:
        raise Invalid("The funds of this dispute are not withdrawn.")
    _move(account, dispute, dispute["amount"], -_FEE)
    account.tell("charge.dispute.funds_reinstated", dispute)


def close_dispute(account: Account, dispute: Thing, *, won: bool, reinstate: bool = True) -> None:
    """End the dispute; a won one returns what was withdrawn unless told otherwise."""
    if dispute["status"] not in OPEN:
        raise Invalid("This dispute is already closed", param="dispute")
    dispute["status"] = "won" if won else "lost"
    account.tell("charge.dispute.closed", dispute)
    if won and reinstate and balance_of(dispute) < 0:
        reinstate_funds(account, dispute)


def balance_of(dispute: Thing) -> int:
    """Return what the dispute has moved so far, without fees; negative while the money is gone."""
    return sum(item["amount"] for item in dispute["balance_transactions"])


def _move(account: Account, dispute: Thing, amount: int, fee: int) -> None:
    charge = account.store.get("charge", dispute["charge"]) or {}
    category = "dispute" if amount < 0 else "dispute_reversal"
    moved = record_balance(account, "adjustment", dispute["id"], charge, amount, fee, category)
    dispute["balance_transactions"].append(dict(moved))


def _blank(account: Account, charge: Thing, reason: str, amount: int) -> Thing:
    card = charge["payment_method_details"]["card"]
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
                "brand": card["brand"],
                "case_type": "chargeback",
                "network": card["brand"],
                "network_reason_code": "10",
            },
            "type": "card",
        },
        "reason": reason,
        "status": "needs_response",
    }
