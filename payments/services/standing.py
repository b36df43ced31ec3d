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
    PAY = "pay"
    # The running period is not paid for, and upsert buys a month.
    REFUNDED = "refunded"
    DISPUTED = "disputed"
    NOT_PAID = "not-paid"


@dataclass(frozen=True, slots=True)
class SubscriptionReport:
    """
    The state of a subscription. Amounts are in minor units.

    `paid_minor` is what the current period has cost less what was returned, None if it is not paid; `next_minor` what
    the next invoice will charge as Stripe previewed it at `previewed_at`, None if there is none or none is known.
    `open_minor` is None while Stripe cannot be asked. `client_secret` confirms the open payment. `others` are further
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
    Return the state of the user's live subscription, or else of the one that ended last.

    Stripe is read for an open payment and for the next invoice. While Stripe is unavailable, our rows answer: the next
    charge is the one previewed last.

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
    """Return Stripe's state of a subscription that waits for a payment, and whether Stripe could not be asked."""
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
    """Return what the next invoice will charge, with quantities, discounts, tax and further lines: Stripe's preview."""
    try:
        if _charges_no_more(row) and row.status not in Subscription.ENDED:
            # A clerk may have resumed it at Stripe's dashboard, and the event has not arrived.
            synchronisation.refresh(
                customer=row.customer, subscription_id=row.stripe_subscription_id, now=now
            )
            row.refresh_from_db()
        if _charges_no_more(row):
            return None, None
        if row.status == Subscription.Status.INCOMPLETE:
            return row.amount_minor, row.synced_at  # Stripe previews nothing before the first payment.
        charge = get_billing_client().next_charge(subscription_id=row.stripe_subscription_id)
    except BillingUnavailable:
        return (None, None) if _charges_no_more(row) else (row.next_minor, row.next_previewed_at)
    # A preview of other terms than the row's would outlive them.
    same = Subscription.objects.filter(pk=row.pk, amount_minor=row.amount_minor, status=row.status)
    same.update(next_minor=charge, next_previewed_at=now)
    return charge, now


def _charges_no_more(row: Subscription) -> bool:
    """Return whether Stripe charges nothing when the running period ends, as far as the row knows."""
    rests = row.is_resting and (row.rests_until is None or row.rests_until > row.current_period_end)
    return row.status in Subscription.ENDED or row.cancels_at_period_end or rests


def _next_step(row: Subscription, state: SubscriptionState | None, *, now: datetime) -> NextStep:
    if row.status in {*Subscription.ENDED, Subscription.Status.PAUSED} or row.is_resting:
        return NextStep.SUBSCRIBE
    if row.status not in Subscription.COLLECTABLE:
        return unpaid_month(row, now=now) or NextStep.NOTHING
    if state is not None and state.payment_client_secret:
        return NextStep.CONFIRM
    return NextStep.CAPTURE_CARD if state is not None and state.decline_code else NextStep.PAY


def unpaid_month(row: Subscription, *, now: datetime) -> NextStep | None:
    """
    Return why the running period of an active subscription is not paid for; None if it is, or if Stripe still collects.

    Money that was returned in full counts as not paid. So does an invoice that was settled without a payment: voided,
    written off, discounted to nothing, or paid outside of Stripe. A balance is money that an earlier invoice collected,
    or a gift; it pays every invoice until it is used up.
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
