"""A subscription's status after its invoice was paid, or was not."""

from devstack.stripe.billing.ending import cancel_now, expire
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing

_ENDED = ("canceled", "incomplete_expired")


def subscription_of(account: Account, invoice: Thing) -> Thing | None:
    """Return the subscription that the invoice bills, while it has not ended."""
    details = (invoice["parent"] or {}).get("subscription_details")
    found = account.store.get("subscription", details["subscription"]) if details else None
    return found if found is not None and found["status"] not in _ENDED else None


def invoice_paid(account: Account, invoice: Thing) -> None:
    """Make the subscription active once its latest invoice is paid."""
    subscription = subscription_of(account, invoice)
    if subscription is not None and subscription["latest_invoice"] == invoice["id"]:
        _change(account, subscription, "active")


def invoice_failed(account: Account, invoice: Thing, *, last: bool) -> None:
    """Make an active subscription past due; after the last retry do what the account is set to do."""
    subscription = subscription_of(account, invoice)
    if subscription is None or subscription["status"] == "incomplete":
        return
    outcome = account.setting("after_retries", "cancel") if last else "leave"
    if outcome == "cancel":
        cancel_now(account, subscription["id"], reason="payment_failed")
    elif subscription["status"] != "unpaid":
        _change(account, subscription, "unpaid" if outcome == "unpaid" else "past_due")


def invoice_voided(account: Account, invoice: Thing) -> None:
    """End a subscription whose first invoice is void; take one that owed only this invoice back."""
    subscription = subscription_of(account, invoice)
    if subscription is None or subscription["latest_invoice"] != invoice["id"]:
        return
    if subscription["status"] == "incomplete":
        expire(account, subscription["id"])
    else:
        _change(account, subscription, "active")


def _change(account: Account, subscription: Thing, status: str) -> None:
    with account.telling("customer.subscription.updated", subscription):
        subscription["status"] = status
