"""Create, change and cancel the one monthly subscription of a user."""

from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from django.conf import settings

from payments.amounts import MINIMUM_CHARGE
from payments.errors import (
    AmountTooLarge,
    AmountTooSmall,
    AuthenticationRequired,
    BillingInProgress,
    BillingRefused,
    CardDeclined,
    CurrencyFixed,
    CurrencyNotSupported,
    NoSubscription,
    PaymentMethodRequired,
    PaymentProcessing,
)
from payments.models import BillingOperation, Customer, Settlement, Subscription
from payments.services import operations, standing, synchronisation
from payments.services.customers import with_customer
from payments.stripe import get_billing_client
from payments.stripe.client import SubscriptionState
from users.models import User

_Kind = BillingOperation.Kind
# A request gives up after this many steps. Only a request that loses to a concurrent one at each step reaches them.
_MAX_STEPS = 4


@dataclass(frozen=True, slots=True)
class SubscriptionRequest:
    """A monthly amount in minor units, and whether the subscription ends with the current period."""

    amount_minor: int
    currency: str
    cancels_at_period_end: bool


def upsert(*, user: User, request: SubscriptionRequest, now: datetime) -> Subscription:
    """
    Create the user's subscription, or change the live one to match `request`; a repeat changes nothing.

    A changed amount applies from the next period. For an incomplete subscription, the same values retry its open
    invoice, and other values replace the subscription. A subscription that is paused, or whose current month was
    refunded, disputed or settled without a payment, is replaced by one that begins with a paid month. An uncollected
    renewal is retried with the newest card. If staff have paused collection, it is resumed.

    Raises:
        CurrencyNotSupported, AmountTooSmall, AmountTooLarge, CurrencyFixed: the request is not possible.
        PaymentMethodRequired, CardDeclined, AuthenticationRequired: the card cannot pay now.
        PaymentProcessing: the bank has not decided about the payment; nothing else is begun.
        BillingRefused: Stripe refuses for good; `AddressRequired` names the next step.
    """
    check_sellable(request=request)
    act = partial(_upsert, user=user, request=request, now=now)
    return with_customer(user=user, now=now, act=act)


def _upsert(customer: Customer, *, user: User, request: SubscriptionRequest, now: datetime) -> Subscription:
    for _ in range(_MAX_STEPS):
        state = _step(user=user, customer=customer, request=request, now=now)
        if state is not None:
            return _outcome(state)
    raise BillingInProgress("Another request keeps changing the subscription.", retry_after=2)


def check_sellable(*, request: SubscriptionRequest) -> None:
    """
    Refuse a currency or an amount that cannot be charged.

    Raises:
        CurrencyNotSupported, AmountTooSmall, AmountTooLarge: the error names the allowed values.
    """
    supported = settings.BILLING_CURRENCIES
    if request.currency not in supported:
        raise CurrencyNotSupported(f"Subscriptions are sold in: {', '.join(supported)}.", supported=supported)
    minimum, maximum = MINIMUM_CHARGE[request.currency], settings.BILLING_MAX_AMOUNT_MINOR
    if request.amount_minor < minimum:
        raise AmountTooSmall(f"The minimum is {minimum} minor units.", minimum=minimum)
    if request.amount_minor > maximum:
        raise AmountTooLarge(f"The maximum is {maximum} minor units.", maximum=maximum)


def _step(
    *, user: User, customer: Customer, request: SubscriptionRequest, now: datetime
) -> SubscriptionState | None:
    """Take the next step towards the request; return None if another step is needed."""
    live = _live_at_stripe(customer=customer, now=now)
    if not live:
        return _create(user=user, customer=customer, request=request, now=now)
    state, *others = live
    for other in others:
        _cancel_now(user=user, customer=customer, subscription_id=other.subscription_id, now=now)
    if state.status in Subscription.COLLECTABLE:
        # Stripe's list lacks the details of the open payment.
        state = synchronisation.refresh(customer=customer, subscription_id=state.subscription_id, now=now)
    if not _is_live(state):
        return None
    if state.status == Subscription.Status.INCOMPLETE:
        return _pay_or_replace(user=user, customer=customer, state=state, request=request, now=now)
    if state.status == Subscription.Status.PAUSED or _is_unpaid(state, now=now):
        # The subscription collects nothing now, so replace it with one that begins with a paid month.
        _require_card(customer)
        _cancel_now(user=user, customer=customer, subscription_id=state.subscription_id, now=now)
        return None
    if state.currency != request.currency:
        raise CurrencyFixed.to(state.currency)
    changed = _change(user=user, customer=customer, state=state, request=request, now=now)
    # A month that began while collection was paused has left a draft invoice at Stripe.
    is_left_over = state.is_resting and changed.latest_invoice == Settlement.WAITING
    if changed.status in Subscription.OVERDUE or is_left_over or _is_stuck(changed, now=now):
        return _collect(customer=customer, state=changed, now=now)
    return changed


def _live_at_stripe(*, customer: Customer, now: datetime) -> list[SubscriptionState]:
    """
    Store and return the customer's live subscriptions to our product, including those that staff created.

    The one to keep comes first, in the order of `Subscription.objects.kept_first`: active ones first, then by age.
    """
    client, requested_at = get_billing_client(), synchronisation.db_now()
    listed = list(client.live_subscriptions(customer_id=customer.stripe_customer_id))[::-1]
    states = [
        synchronisation.store_latest(customer=customer, state=state, requested_at=requested_at, now=now)
        for state in listed
    ]
    ids = {state.subscription_id for state in states}
    states += [
        synchronisation.refresh(customer=customer, subscription_id=row.stripe_subscription_id, now=now)
        for row in customer.subscriptions.live().exclude(stripe_subscription_id__in=ids)
    ]
    return sorted(filter(_is_live, states), key=lambda state: state.status != Subscription.Status.ACTIVE)


def _is_unpaid(state: SubscriptionState, *, now: datetime) -> bool:
    """Return whether no kept payment covers the current period, and Stripe will not collect one by itself."""
    row = Subscription.objects.get(stripe_subscription_id=state.subscription_id)
    return standing.unpaid_month(row, now=now) is not None


def _is_stuck(state: SubscriptionState, *, now: datetime) -> bool:
    """Return whether the latest invoice waits for the owner."""
    row = Subscription.objects.get(stripe_subscription_id=state.subscription_id)
    return row.stuck_invoice(now) is not None


def _is_live(state: SubscriptionState) -> bool:
    return state.is_ours and state.status not in Subscription.ENDED


def _require_card(customer: Customer) -> None:
    if not get_billing_client().has_payment_method(customer_id=customer.stripe_customer_id):
        raise PaymentMethodRequired("Save a card with getSetupIntent first.")


def _create(
    *, user: User, customer: Customer, request: SubscriptionRequest, now: datetime
) -> SubscriptionState | None:
    _require_card(customer)
    parameters = {
        "customer_id": customer.stripe_customer_id,
        "amount_minor": request.amount_minor,
        "currency": request.currency,
        "cancels_at_period_end": request.cancels_at_period_end,
    }
    operation = operations.begin(user=user, kind=_Kind.CREATE_SUBSCRIPTION, parameters=parameters, now=now)
    if customer.subscriptions.live().exists():
        operations.finish(operation=operation, outcome="already created", now=now)
        return None
    return operations.change_subscription(operation=operation, customer=customer, now=now)


def _change(
    *, user: User, customer: Customer, state: SubscriptionState, request: SubscriptionRequest, now: datetime
) -> SubscriptionState:
    same_amount = state.is_plain and state.amount_minor == request.amount_minor
    ends = state.cancels_at_period_end or state.cancels_at is not None
    same_end = state.cancels_at_period_end if request.cancels_at_period_end else not ends
    if same_amount and same_end and not state.is_resting:
        return state
    if state.is_scheduled:
        raise BillingRefused(
            "A schedule at Stripe decides the subscription's amount and end. Cancel it immediately and subscribe "
            "again, or ask support to release the schedule.",
            reason="scheduled-subscription",
        )
    if state.is_shared and not same_end:
        raise BillingRefused(
            "The subscription bills other products, too, so its end is not ours to change. It can be cancelled "
            "immediately, which ends our part of it.",
            reason="shared-subscription",
        )
    if state.interval != Subscription.MONTHLY and not same_amount:
        raise BillingRefused(
            f"The subscription is paid by the {state.interval}, as support has arranged. Cancel it, and subscribe "
            "again once it has ended to pay by the month.",
            reason="other-interval",
        )
    parameters: dict[str, Any] = {
        "subscription_id": state.subscription_id,
        "item_id": state.item_id,
        "amount_minor": None if same_amount else request.amount_minor,
        "currency": request.currency,
        "cancels_at_period_end": request.cancels_at_period_end,
    }
    if state.is_resting and not request.cancels_at_period_end:
        parameters["resumes"] = True
    if state.other_item_ids and not same_amount:
        parameters["other_item_ids"] = list(state.other_item_ids)
    operation = operations.begin(user=user, kind=_Kind.UPDATE_SUBSCRIPTION, parameters=parameters, now=now)
    return operations.change_subscription(operation=operation, customer=customer, now=now)


def _pay_or_replace(
    *, user: User, customer: Customer, state: SubscriptionState, request: SubscriptionRequest, now: datetime
) -> SubscriptionState | None:
    if SubscriptionRequest(state.amount_minor, state.currency, state.cancels_at_period_end) == request:
        return _collect(customer=customer, state=state, now=now)
    if state.is_processing:
        raise PaymentProcessing
    _cancel_now(user=user, customer=customer, subscription_id=state.subscription_id, now=now)
    return None


def _collect(*, customer: Customer, state: SubscriptionState, now: datetime) -> SubscriptionState:
    """Retry the newest invoice with the newest card, and return the subscription's new state."""
    # The wallet may have just captured another card, whose webhook has not arrived yet.
    get_billing_client().use_newest_card(customer_id=customer.stripe_customer_id)
    get_billing_client().pay_invoice(invoice_id=state.latest_invoice_id)
    return synchronisation.refresh(customer=customer, subscription_id=state.subscription_id, now=now)


def cancel(*, user: User, immediately: bool, now: datetime) -> Subscription:
    """
    Cancel all live subscriptions of the user, at once or at the end of the current period.

    Cancelling at once ends the allowance without a refund; credits stay. Repeating a cancellation at the period's end
    changes nothing.

    Raises:
        NoSubscription: the user has no live subscription.
        BillingRefused: the subscription also bills other products, so it can only be cancelled at once.
    """
    before = Subscription.objects.live().filter(user_id=user.pk).kept_first().first()
    customer = Customer.objects.current().filter(user_id=user.pk).first()
    live = _live_at_stripe(customer=customer, now=now) if customer else []
    if customer is not None:
        for state in live:
            if immediately or state.status == Subscription.Status.INCOMPLETE:
                _cancel_now(user=user, customer=customer, subscription_id=state.subscription_id, now=now)
            else:
                _cancel_at_period_end(user=user, customer=customer, state=state, now=now)
    cancelled = live[0].subscription_id if live else before and before.stripe_subscription_id
    if cancelled is None:
        raise NoSubscription("There is no live subscription.")
    return Subscription.objects.select_related("customer").get(stripe_subscription_id=cancelled)


def _cancel_at_period_end(*, user: User, customer: Customer, state: SubscriptionState, now: datetime) -> None:
    kept = replace(state, is_plain=True)  # Leaves the items unchanged.
    request = SubscriptionRequest(state.amount_minor, state.currency, cancels_at_period_end=True)
    _change(user=user, customer=customer, state=kept, request=request, now=now)


def _cancel_now(*, user: User, customer: Customer, subscription_id: str, now: datetime) -> SubscriptionState:
    operation = operations.begin(
        user=user, kind=_Kind.CANCEL_SUBSCRIPTION, parameters={"subscription_id": subscription_id}, now=now
    )
    return operations.change_subscription(operation=operation, customer=customer, now=now)


def _outcome(state: SubscriptionState) -> Subscription:
    if state.status in Subscription.COLLECTABLE and state.is_processing:
        raise PaymentProcessing
    if state.status in Subscription.COLLECTABLE and state.decline_code:
        raise CardDeclined(
            "The card was declined. Capture another card and retry.", declineCode=state.decline_code
        )
    if state.status in Subscription.COLLECTABLE and state.payment_client_secret:
        raise AuthenticationRequired(
            "The card holder must confirm the payment.", clientSecret=state.payment_client_secret
        )
    return Subscription.objects.select_related("customer").get(stripe_subscription_id=state.subscription_id)
