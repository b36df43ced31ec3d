"""The ends of a subscription."""

from devstack.stripe.billing.invoicing import void
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing

_ENDED = ("canceled", "incomplete_expired")


def cancel_now(
    account: Account,
    identifier: str,
    *,
    reason: str,
    ended_at: int | None = None,
    details: Thing | None = None,
) -> None:
    """End the subscription; what it has not collected is no longer collected by itself."""
    subscription = account.store.get("subscription", identifier)
    if subscription is None or subscription["status"] in _ENDED:
        return
    first_unpaid = subscription["status"] == "incomplete"
    subscription.update(status="canceled", ended_at=ended_at or account.now)
    subscription["canceled_at"] = subscription["canceled_at"] or account.now
    subscription["cancellation_details"] |= {"reason": reason, **(details or {})}
    _let_go(account, identifier, void_open=first_unpaid)
    account.tell("customer.subscription.deleted", subscription)


def expire(account: Account, identifier: str) -> None:
    """End a subscription whose first invoice was never paid; that invoice becomes void."""
    subscription = account.store.get("subscription", identifier)
    if subscription is None or subscription["status"] != "incomplete":
        return
    with account.telling("customer.subscription.updated", subscription):
        subscription.update(status="incomplete_expired", ended_at=account.now)
    _let_go(account, identifier, void_open=True)


def leave_uncollected(account: Account, invoice: Thing) -> None:
    """Let a draft or open invoice wait for somebody to take it up."""
    with account.telling("invoice.updated", invoice):
        invoice.update(auto_advance=False, next_payment_attempt=None, automatically_finalizes_at=None)


def _let_go(account: Account, identifier: str, *, void_open: bool) -> None:
    for found in account.store.all("invoice"):
        details = (found["parent"] or {}).get("subscription_details") or {}
        if details.get("subscription") != identifier or found["status"] not in ("draft", "open"):
            continue
        invoice = account.store.get("invoice", found["id"]) or found
        if void_open and invoice["status"] == "open":
            void(account, invoice)
        else:
            leave_uncollected(account, invoice)
