"""What banks do, and what is done about it at the dashboard: disputes and refunds."""

from typing import Any

from devstack.stripe.billing.disputing import close_dispute, open_dispute, reinstate_funds, withdraw_funds
from devstack.stripe.billing.refunding import fail_refund, refund_charge
from devstack.stripe.control.desk import Body, Desk, needed, wanted
from devstack.stripe.nouns.refunds import paid_charge
from devstack.stripe.state.things import public


def dispute_open(desk: Desk, body: Body) -> Any:
    """Dispute a charge, named by itself or by its payment intent."""
    charge = paid_charge(desk.account, body)
    reason, withdraw = body.get("reason", "fraudulent"), body.get("withdraw", True)
    dispute = open_dispute(desk.account, charge, reason=reason, amount=body.get("amount"), withdraw=withdraw)
    return public(dispute)


def dispute_withdraw(desk: Desk, body: Body) -> Any:
    """Take the disputed money."""
    dispute = wanted(desk, "dispute", body)
    withdraw_funds(desk.account, dispute)
    return public(dispute)


def dispute_reinstate(desk: Desk, body: Body) -> Any:
    """Give the disputed money back."""
    dispute = wanted(desk, "dispute", body)
    reinstate_funds(desk.account, dispute)
    return public(dispute)


def dispute_close(desk: Desk, body: Body) -> Any:
    """Decide a dispute: `won` or lost; a won one gives the money back unless `reinstate` is false."""
    dispute = wanted(desk, "dispute", body)
    close_dispute(desk.account, dispute, won=bool(needed(body, "won")), reinstate=body.get("reinstate", True))
    return public(dispute)


def refund(desk: Desk, body: Body) -> Any:
    """Refund a charge at the dashboard."""
    charge = paid_charge(desk.account, body)
    made = refund_charge(
        desk.account, charge, amount=body.get("amount"), reason=body.get("reason"), metadata={}
    )
    return public(made)


def refund_fail(desk: Desk, body: Body) -> Any:
    """Let a refund fail after all."""
    found = wanted(desk, "refund", body)
    fail_refund(desk.account, found, reason=body.get("reason", "lost_or_stolen_card"))
    return public(found)


CONTROLS = {
    ("POST", "disputes/open"): dispute_open,
    ("POST", "disputes/withdraw"): dispute_withdraw,
    ("POST", "disputes/reinstate"): dispute_reinstate,
    ("POST", "disputes/close"): dispute_close,
    ("POST", "refunds/create"): refund,
    ("POST", "refunds/fail"): refund_fail,
}
