"""Charges, and what they move on the account's balance."""

from devstack.stripe.billing.cards import refusal
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing, new_id

_TWO_DAYS = 2 * 86_400
_NOTHING = (
    "application", "application_fee", "application_fee_amount", "balance_transaction", "failure_balance_transaction",
    "failure_code", "failure_message", "on_behalf_of", "receipt_email", "receipt_number", "receipt_url", "review",
    "shipping", "source_transfer", "statement_descriptor", "statement_descriptor_suffix", "transfer_data",
    "transfer_group",
)  # fmt: skip


def record_charge(account: Account, intent: Thing, method: Thing, decline_code: str | None) -> Thing:
    """Record that the bank paid, or that it refused."""
    charge = account.add(_blank(account, intent, method))
    if decline_code:
        error = refusal(decline_code)
        charge.update(failure_code=error["code"], failure_message=error["message"])
        charge["outcome"] |= {
            "network_status": "declined_by_network",
            "reason": decline_code,
            "type": "issuer_declined",
        }
        charge["outcome"]["seller_message"] = "The bank did not return any further details with this decline."
        account.tell("charge.failed", charge)
        return charge
    charge.update(status="succeeded", paid=True, captured=True, amount_captured=intent["amount"])
    fee = round(intent["amount"] * 0.029) + 30
    charge["balance_transaction"] = record_balance(
        account, "charge", charge["id"], charge, intent["amount"], fee
    )["id"]
    account.tell("charge.succeeded", charge)
    return charge


def record_balance(
    account: Account,
    type: str,
    source: str,
    charge: Thing,
    amount: int,
    fee: int = 0,
    category: str | None = None,
) -> Thing:
    """Record money that came to the account's balance, or left it where the amount is negative."""
    details = {
        "amount": fee,
        "application": None,
        "currency": charge["currency"],
        "description": "Processing fees",
    }
    return account.add(
        {
            "object": "balance_transaction",
            "id": new_id("txn"),
            "amount": amount,
            "available_on": account.now + _TWO_DAYS,
            "balance_type": "payments",
            "created": account.now,
            "currency": charge["currency"],
            "description": charge["description"],
            "exchange_rate": None,
            "fee": fee,
            "fee_details": [{**details, "type": "stripe_fee"}] if fee else [],
            "net": amount - fee,
            "reporting_category": category or type,
            "source": source,
            "status": "pending",
            "type": type,
        }
    )


def _blank(account: Account, intent: Thing, method: Thing) -> Thing:
    return {
        "object": "charge",
        "id": new_id("ch"),
        "amount": intent["amount"],
        "amount_captured": 0,
        "amount_refunded": 0,
        "billing_details": method["billing_details"],
        "calculated_statement_descriptor": "DOUBLE",
        "captured": False,
        "created": account.now,
        "currency": intent["currency"],
        "customer": intent["customer"],
        "description": intent["description"],
        "disputed": False,
        "fraud_details": {},
        "livemode": False,
        "metadata": {},
        "outcome": _outcome(),
        "paid": False,
        "payment_intent": intent["id"],
        "payment_method": method["id"],
        "payment_method_details": {"card": _card_details(method["card"]), "type": "card"},
        "refunded": False,
        "status": "failed",
        **dict.fromkeys(_NOTHING),
    }


def _outcome() -> Thing:
    return {
        "advice_code": None,
        "network_advice_code": None,
        "network_decline_code": None,
        "network_status": "approved_by_network",
        "reason": None,
        "risk_level": "normal",
        "risk_score": 17,
        "seller_message": "Payment complete.",
        "type": "authorized",
    }


def _card_details(card: Thing) -> Thing:
    known = {name: card[name] for name in ("brand", "country", "exp_month", "exp_year", "funding", "last4")}
    unknown = dict.fromkeys(("installments", "mandate", "network_token", "three_d_secure", "wallet"))
    return (
        known
        | unknown
        | {"checks": card["checks"], "fingerprint": card["fingerprint"], "network": card["brand"]}
    )
