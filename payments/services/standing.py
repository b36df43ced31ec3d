"""The state of a subscription: the price of its current period and of the next invoice, and the next step."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from payments.errors import BillingUnavailable, NoSubscription
from payments.models import Settlement, Subscription
from payments.services import synchronisation
from payments.stripe import get_billing_client
from payments.stripe.client import SubscriptionState
from users.models import User


class NextStep(StrEnum):
    """The owner's next step."""

    NOTHING = "nothing"
    SUBSCRIBE = "subscribe"
    CAPTURE_CARD = "capture-card"
    CONFIRM = "confirm"
    # The bank has not decided about the payment yet.
    WAIT = "wait"
    PAY = "pay"
    # Stripe cannot collect the latest invoice before the owner has completed the address, on which tax depends.
    COMPLETE_ADDRESS = "complete-address"
    # Stripe charges no card: the owner pays the invoice on its page.
    PAY_INVOICE = "pay-invoice"
    # In these cases, the current period is not paid for, and upsert buys a new month.
    REFUNDED = "refunded"
    DISPUTED = "disputed"
    NOT_PAID = "not-paid"


@dataclass(frozen=True, slots=True)
class SubscriptionReport:
    """
    The state of a subscription. Amounts are in minor units.

    `paid_minor` is the price paid for the current period less returned money, None if it is not paid. `next_minor` is
    the amount of the next invoice as Stripe previewed it at `previewed_at`, None without a next invoice or a preview.
    `open_minor` is None while Stripe is unavailable. `client_secret` confirms the open payment. `others` are further
    live subscriptions of the user.
    """

    subscription: Subscription
    paid_minor: int | None
    next_minor: int | None
    previewed_at: datetime | None
    open_minor: int | None
    client_secret: str
    decline_code: str
    next_step: NextStep
    others: list[Subscription]


def report(*, user: User, now: datetime) -> SubscriptionReport:
    """
    Return the state of the user's live subscription, or else of the one that was created last.

    Reads an open payment and the next invoice from Stripe. While Stripe is unavailable, the report uses only our rows,
    with the next charge as last previewed.

    Raises:
        NoSubscription: the user never had one.
    """
    row = Subscription.objects.select_related("customer").filter(user_id=user.pk).current_or_last()
    if row is None:
        raise NoSubscription("There is no subscription. Create one with upsertSubscription.")
    state, is_away = _open_payment(row, now=now)
    next_minor, previewed_at = _next_charge(row, now=now)
    paid = row.payouts_at(now)
    return SubscriptionReport(
        subscription=row,
        paid_minor=sum(payout.kept_minor for payout in paid) if paid else None,
        next_minor=next_minor,
        previewed_at=previewed_at,
        open_minor=None if is_away else state.open_minor if state else 0,
        client_secret=state.payment_client_secret if state else "",
        decline_code=state.decline_code if state else "",
        next_step=_next_step(row, state, now=now),
        others=list(Subscription.objects.live().filter(user_id=user.pk).exclude(pk=row.pk).order_by("pk")),
    )


def _open_payment(row: Subscription, *, now: datetime) -> tuple[SubscriptionState | None, bool]:
    """Return Stripe's state of a subscription that waits for a payment, and whether Stripe was unavailable."""
    if row.status not in Subscription.COLLECTABLE:
        return None, False
    try:
        state = synchronisation.refresh(
            customer=row.customer, subscription_id=row.stripe_subscription_id, now=now
        )
    except BillingUnavailable:
        return None, True
    row.refresh_from_db()
    return state, False


def _next_charge(row: Subscription, *, now: datetime) -> tuple[int | None, datetime | None]:
    """Return the amount of the next invoice as Stripe previews it, tax and discounts included, and when it did."""
    try:
        if _charges_no_more(row) and row.status not in Subscription.ENDED:
            # Staff may have resumed the subscription in Stripe's dashboard, and the event has not arrived yet.
            synchronisation.refresh(
                customer=row.customer, subscription_id=row.stripe_subscription_id, now=now
            )
            row.refresh_from_db()
        if _charges_no_more(row):
            return None, None
        if row.status == Subscription.Status.INCOMPLETE:
            return row.amount_minor, row.synced_at  # Stripe has no preview before the first payment.
        charge = get_billing_client().next_charge(subscription_id=row.stripe_subscription_id)
    except BillingUnavailable:
        return (None, None) if _charges_no_more(row) else (row.next_minor, row.next_previewed_at)
    # Store the preview only if the row still has the terms that were previewed.
    same = Subscription.objects.filter(pk=row.pk, amount_minor=row.amount_minor, status=row.status)
    same.update(next_minor=charge, next_previewed_at=now)
    return charge, now


def _charges_no_more(row: Subscription) -> bool:
    """Return whether, according to the row, Stripe will charge nothing when the current period ends."""
    rests = row.is_resting and (row.rests_until is None or row.rests_until > row.current_period_end)
    return row.status in Subscription.ENDED or row.cancels_at_period_end or rests


def _next_step(row: Subscription, state: SubscriptionState | None, *, now: datetime) -> NextStep:
    if row.status in {*Subscription.ENDED, Subscription.Status.PAUSED} or row.is_resting:
        return NextStep.SUBSCRIBE
    if row.status not in Subscription.COLLECTABLE:
        return _stuck_invoice(row, now=now) or unpaid_month(row, now=now) or NextStep.NOTHING
    if state is not None and state.payment_client_secret:
        return NextStep.CONFIRM
    if state is not None and state.is_processing:
        return NextStep.WAIT
    return NextStep.CAPTURE_CARD if state is not None and state.decline_code else NextStep.PAY


def _stuck_invoice(row: Subscription, *, now: datetime) -> NextStep | None:
    """Return the way out for an invoice that Stripe will not collect by itself."""
    stuck = row.stuck_invoice(now)
    if stuck is None:
        return None
    if stuck == Settlement.ADDRESS_MISSING:
        return NextStep.COMPLETE_ADDRESS
    return NextStep.PAY_INVOICE if row.is_invoiced else NextStep.PAY


def unpaid_month(row: Subscription, *, now: datetime) -> NextStep | None:
    """
    Return why the current period of an active subscription is not paid for; None if it is, or if Stripe still collects.

    A period whose money was returned in full counts as not paid. So does one whose invoice was settled without a
    payment: voided, written off, discounted to nothing, or paid outside of Stripe. A credit balance does count as
    payment: it is money of an earlier invoice, or a gift.
    """
    if row.status != Subscription.Status.ACTIVE:
        return None
    payouts = row.payouts_at(now)
    if any(not payout.is_taken_back() for payout in payouts):
        return None
    if payouts:
        is_disputed = any(payout.disputed_minor for payout in payouts)
        return NextStep.DISPUTED if is_disputed else NextStep.REFUNDED
    return NextStep.NOT_PAID if row.latest_invoice in Settlement.unpaid() else None
