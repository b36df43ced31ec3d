"""The account's balance: its transactions, and payouts of it to a bank account."""

from stripe_double.account import Account
from stripe_double.parameters import String
from stripe_double.resources.charges import record_balance_transaction
from stripe_double.routing import list_route, retrieve_route
from stripe_double.store import Resource, new_id

_PATH = "/v1/balance_transactions"
_PAYOUTS = "/v1/payouts"
_NULL = (
    "application_fee", "application_fee_amount", "destination", "failure_balance_transaction", "failure_code",
    "failure_message", "original_payout", "reversed_by", "statement_descriptor",
)  # fmt: skip


def pay_out(account: Account) -> list[Resource]:
    """Pay the whole balance of each currency to the bank; nothing where that is not above 0."""
    totals: dict[str, int] = {}
    for transaction in account.store.all("balance_transaction"):
        totals[transaction["currency"]] = totals.get(transaction["currency"], 0) + transaction["net"]
    return [_pay_out(account, currency, total) for currency, total in totals.items() if total > 0]


def _pay_out(account: Account, currency: str, amount: int) -> Resource:
    payout: Resource = {
        "object": "payout",
        "id": new_id("po"),
        **dict.fromkeys(_NULL),
        "amount": amount,
        "arrival_date": account.now,
        "automatic": True,
        "created": account.now,
        "currency": currency,
        "description": "STRIPE PAYOUT",
        "livemode": False,
        "metadata": {},
        "method": "standard",
        "reconciliation_status": "completed",
        "source_type": "card",
        "status": "paid",
        "type": "bank_account",
    }
    transaction = record_balance_transaction(account, "payout", payout["id"], payout, -amount)
    payout["balance_transaction"] = transaction["id"]
    return account.add(payout)


ROUTES = (
    list_route(_PATH, "balance_transaction", currency=String(), source=String(), type=String()),
    retrieve_route(_PATH, "balance_transaction"),
    list_route(_PAYOUTS, "payout", status=String()),
    retrieve_route(_PAYOUTS, "payout"),
)
