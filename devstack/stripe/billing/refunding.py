"""Refunds: money given back, at once, later, or in the end not."""

from devstack.stripe.billing.cards import card_of
from devstack.stripe.billing.charges import record_balance
from devstack.stripe.billing.disputing import balance_of
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing, new_id
from devstack.stripe.wire.refusals import Invalid

_LATER = 60


def refund_charge(
    account: Account, charge: Thing, *, amount: int | None, reason: str | None, metadata: dict[str, str]
) -> Thing:
    """Give back the amount, or all that is left of the charge."""
    left = charge["amount"] - charge["amount_refunded"]
    _refuse_impossible(account, charge, amount, left)
    method = account.store.get("payment_method", charge["payment_method"])
    manner = card_of(method).refund if method else "succeeded"
    refund = _blank(account, charge, amount or left, reason, metadata)
    refund["status"] = "pending" if manner == "pending" else "succeeded"
    refund["_settles_at"] = account.now + _LATER if manner != "succeeded" else None
    moved = record_balance(account, "refund", refund["id"], charge, -refund["amount"])
    refund["balance_transaction"] = moved["id"]
    account.tell("refund.created", account.add(refund))
    _count(charge, refund["amount"])
    account.tell("charge.refunded", charge)
    return refund


def settles_at(refund: Thing) -> int | None:
    """Return when the bank answers a refund that it did not answer at once."""
    moment: int | None = refund["_settles_at"]
    return moment


def settle_refund(account: Account, refund: Thing) -> None:
    """Let a waiting refund arrive, or fail where it cannot."""
    if refund["status"] == "succeeded":
        fail_refund(account, refund, reason="expired_or_canceled_card")
        return
    refund.update(status="succeeded", _settles_at=None)
    account.tell("refund.updated", refund)


def fail_refund(account: Account, refund: Thing, *, reason: str) -> None:
    """Return the money of a refund to the account: the bank could not give it back."""
    if refund["status"] not in ("pending", "succeeded"):
        raise Invalid("This refund cannot fail any more.", param="refund")
    charge = account.store.get("charge", refund["charge"]) or {}
    moved = record_balance(account, "refund_failure", refund["id"], charge, refund["amount"])
    refund.update(
        status="failed", failure_reason=reason, failure_balance_transaction=moved["id"], _settles_at=None
    )
    refund.pop("pending_reason", None)
    with account.telling("charge.updated", charge):
        _count(charge, -refund["amount"])
    for event in ("refund.updated", "charge.refund.updated", "refund.failed"):
        account.tell(event, refund)


def _count(charge: Thing, amount: int) -> None:
    charge["amount_refunded"] += amount
    charge["refunded"] = charge["amount_refunded"] == charge["amount"]


def _refuse_impossible(account: Account, charge: Thing, amount: int | None, left: int) -> None:
    if charge["status"] != "succeeded":
        raise Invalid("This charge was not paid, so it cannot be refunded.", param="charge")
    if any(item["charge"] == charge["id"] and balance_of(item) < 0 for item in account.store.all("dispute")):
        message = f"Charge {charge['id']} has been charged back; cannot issue a refund."
        raise Invalid(message, code="charge_disputed", param="charge")
    if left <= 0:
        raise Invalid(f"Charge {charge['id']} has already been refunded.", code="charge_already_refunded")
    if amount is not None and amount > left:
        message = f"Refund amount ({amount}) is greater than unrefunded amount on charge ({left})"
        raise Invalid(message, param="amount")


def _blank(
    account: Account, charge: Thing, amount: int, reason: str | None, metadata: dict[str, str]
) -> Thing:
    nothing = ("receipt_number", "source_transfer_reversal", "transfer_reversal")
    return {
        "object": "refund",
        "id": new_id("re"),
        **dict.fromkeys(nothing),
        "amount": amount,
        "charge": charge["id"],
        "created": account.now,
        "currency": charge["currency"],
        "destination_details": {"card": {"type": "refund"}, "type": "card"},
        "metadata": metadata,
        "payment_intent": charge["payment_intent"],
        "reason": reason,
    }
