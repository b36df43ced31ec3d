"""Charges and their balance transactions."""

from stripe_double.account import Account
from stripe_double.events import emit
from stripe_double.parameters import String
from stripe_double.resources.cards import decline_error
from stripe_double.routing import list_route, retrieve_route
from stripe_double.store import Resource, new_id

_PATH = "/v1/charges"
_TWO_DAYS = 2 * 86_400
_NULL = (
    "application", "application_fee", "application_fee_amount", "balance_transaction", "failure_balance_transaction",
    "failure_code", "failure_message", "on_behalf_of", "receipt_email", "receipt_number", "receipt_url", "review",
    "shipping", "source_transfer", "statement_descriptor", "statement_descriptor_suffix", "transfer_data",
    "transfer_group",
)  # fmt: skip


def record_charge(account: Account, intent: Resource, method: Resource, decline_code: str | None) -> Resource:
    """Record a successful or declined charge."""
    charge = account.add(_new_charge(account, intent, method))
    if decline_code:
        error = decline_error(decline_code)
        charge.update(failure_code=error["code"], failure_message=error["message"])
        charge["outcome"] |= {
            "network_status": "declined_by_network",
            "reason": decline_code,
            "type": "issuer_declined",
            "seller_message": "The bank did not return any further details with this decline.",
        }
        emit(account, "charge.failed", charge)
        return charge
    amount = intent["amount"]
    charge.update(status="succeeded", paid=True, captured=True, amount_captured=amount)
    fee = round(amount * 0.029) + 30
    transaction = record_balance_transaction(account, "charge", charge["id"], charge, amount, fee)
    charge["balance_transaction"] = transaction["id"]
    emit(account, "charge.succeeded", charge)
    return charge


def record_balance_transaction(
    account: Account,
    type: str,
    source: str,
    charge: Resource,
    amount: int,
    fee: int = 0,
    category: str | None = None,
) -> Resource:
    """Record a balance transaction; a negative amount leaves the balance."""
    fee_detail = {
        "amount": fee,
        "application": None,
        "currency": charge["currency"],
        "description": "Processing fees",
        "type": "stripe_fee",
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
            "fee_details": [fee_detail] if fee else [],
            "net": amount - fee,
            "reporting_category": category or type,
            "source": source,
            "status": "pending",
            "type": type,
        }
    )


def _new_charge(account: Account, intent: Resource, method: Resource) -> Resource:
    return {
        "object": "charge",
        "id": new_id("ch"),
        **dict.fromkeys(_NULL),
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
        "outcome": {
            **dict.fromkeys(("advice_code", "network_advice_code", "network_decline_code", "reason")),
            "network_status": "approved_by_network",
            "risk_level": "normal",
            "risk_score": 17,
            "seller_message": "Payment complete.",
            "type": "authorized",
        },
        "paid": False,
        "payment_intent": intent["id"],
        "payment_method": method["id"],
        "payment_method_details": {"card": _card_details(method["card"]), "type": "card"},
        "refunded": False,
        "status": "failed",
    }


_NULL_OF_CARD = (
    "amount_authorized", "authorization_code", "installments", "mandate", "network_token", "network_transaction_id",
    "regulated_status", "three_d_secure", "transaction_link_id", "wallet",
)  # fmt: skip


def _card_details(card: Resource) -> Resource:
    same = ("brand", "checks", "country", "exp_month", "exp_year", "fingerprint", "funding", "last4")
    return {
        **{name: card[name] for name in same},
        **dict.fromkeys(_NULL_OF_CARD),
        "network": card["brand"],
    }


ROUTES = (
    list_route(_PATH, "charge", customer=String(), payment_intent=String()),
    retrieve_route(_PATH, "charge"),
)
