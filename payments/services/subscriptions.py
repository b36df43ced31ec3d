"""
Ask Stripe about a subscription, outside any transaction, and store the answer.

Either for a change, which an operation has recorded before, or for a look at its state.

Begin, change and end the one monthly subscription of a user.
"""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import transaction

from payments.amounts import MINIMUM_CHARGE
from payments.errors import (
    AmountTooLarge,
    AmountTooSmall,
    AnswerOutdated,
    AuthenticationRequired,
    BillingInProgress,
    CardDeclined,
    CurrencyFixed,
    CurrencyNotSupported,
    NoSubscription,
    PaymentMethodRequired,
)
from payments.models import BillingOperation, Customer, Subscription
from payments.services import operations, synchronisation
from payments.services.customers import ensure_customer
from payments.stripe.client import get_billing_client
from payments.stripe.states import SubscriptionState
from users.models import User


def carry_out(*, operation: BillingOperation, customer: Customer, now: datetime) -> SubscriptionState:
    """
    Ask Stripe for the operation, with its id as the key, and apply the answer.

    Raises:
        BillingUnavailable: Stripe is away; the operation stays pending.
        BillingInProgress: others keep changing the subscription.
        DomainError: Stripe refused for good; the operation is over.
    """
    since = synchronisation.mark()
    with operations.closed_if_refused(operation=operation, now=now):
        state = _ask(operation)
    return _settle(customer=customer, state=state, since=since, operation=operation, now=now)


def _ask(operation: BillingOperation) -> SubscriptionState:
    client, asked, key = get_billing_client(), operation.parameters, str(operation.pk)
    match operation.kind:
        case BillingOperation.Kind.CREATE_SUBSCRIPTION:
            return client.create_subscription(
                customer_id=asked["customer"],
                amount_minor=asked["amount_minor"],
                currency=asked["currency"],
                cancels_at_period_end=asked["cancels_at_period_end"],
                key=key,
            )
        case BillingOperation.Kind.UPDATE_SUBSCRIPTION:
            return client.update_subscription(
                subscription_id=asked["subscription"],
                item_id=asked["item"],
                amount_minor=asked["amount_minor"],
                currency=asked["currency"],
                cancels_at_period_end=asked["cancels_at_period_end"],
                key=key,
            )
        case BillingOperation.Kind.CANCEL_SUBSCRIPTION:
            return client.cancel_subscription(subscription_id=asked["subscription"], key=key)
    raise ValueError(f"{operation.kind} is no change of a subscription")


def look(*, customer: Customer, subscription_id: str, now: datetime) -> SubscriptionState:
    """
    Read the subscription afresh, store it, and return what was stored.

    Raises:
        BillingUnavailable: Stripe is away.
        BillingInProgress: others keep changing it.
    """
    since = synchronisation.mark()
    state = get_billing_client().retrieve_subscription(subscription_id=subscription_id)
    return _settle(customer=customer, state=state, since=since, operation=None, now=now)


def _settle(
    *,
    customer: Customer,
    state: SubscriptionState,
    since: datetime,
    operation: BillingOperation | None,
    now: datetime,
) -> SubscriptionState:
    """Write the answer, finish the operation and return what was written: a later answer where others wrote since."""
    for _ in range(synchronisation.LOOKS):
        until = synchronisation.mark()
        try:
            with transaction.atomic(durable=True):
                contested = synchronisation.hear(customer=customer, since=since, until=until)
                synchronisation.store(customer=customer, state=state, contested=contested, now=now)
                if operation is not None:
                    operations.finish(operation=operation, outcome=state.subscription_id, now=now)
        except AnswerOutdated:
            since = synchronisation.mark()
            state = get_billing_client().retrieve_subscription(subscription_id=state.subscription_id)
        else:
            return state
    raise BillingInProgress("Other requests keep changing the subscription.", retry_after=2)


_Kind = BillingOperation.Kind
# After so many looks a request gives up that finds a faster one each time.
_LOOKS = 4


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user asks for: a monthly amount in minor units, and whether to end after the running period."""

    amount_minor: int
    currency: str
    cancels_at_period_end: bool


def upsert(*, user: User, wish: Wish, now: datetime) -> Subscription:
    """
    Begin the user's subscription, or bring the running one to `wish`; a repeat changes nothing.

    A changed amount applies from the next period. An incomplete subscription with the
    same values tries its open invoice again, with other values it is ended and begun anew.

    Raises:
        CurrencyNotSupported, AmountTooSmall, AmountTooLarge, CurrencyFixed: the wish cannot be fulfilled.
        PaymentMethodRequired, CardDeclined, AuthenticationRequired: the card cannot pay now.
        BillingUnavailable, BillingInProgress: repeat later; nothing is charged twice.
    """
    check_sellable(wish=wish)
    customer = ensure_customer(user=user, now=now)
    for _ in range(_LOOKS):
        state = _step(user=user, customer=customer, wish=wish, now=now)
        if state is not None:
            return _outcome(customer=customer, state=state)
    raise BillingInProgress("Another request keeps changing the subscription.", retry_after=2)


def check_sellable(*, wish: Wish) -> None:
    """
    Refuse a currency or an amount that cannot be charged.

    Raises:
        CurrencyNotSupported, AmountTooSmall, AmountTooLarge.
    """
    supported = settings.BILLING_CURRENCIES
    if wish.currency not in supported:
        raise CurrencyNotSupported(f"Subscriptions are sold in: {', '.join(supported)}.", supported=supported)
    minimum, maximum = MINIMUM_CHARGE[wish.currency], settings.BILLING_MAX_AMOUNT_MINOR
    if wish.amount_minor < minimum:
        raise AmountTooSmall(f"The least is {minimum} minor units.", minimum=minimum)
    if wish.amount_minor > maximum:
        raise AmountTooLarge(f"The most is {maximum} minor units.", maximum=maximum)


def _step(*, user: User, customer: Customer, wish: Wish, now: datetime) -> SubscriptionState | None:
    """Take the next step towards the wish; None means that something has changed and must be looked at again."""
    living = Subscription.objects.living().filter(user_id=user.pk).first()
    if living is None:
        return _begin(user=user, customer=customer, wish=wish, now=now)
    state = look(customer=customer, subscription_id=living.stripe_subscription_id, now=now)
    if state.status in Subscription.ENDED:
        return None
    if state.status == Subscription.Status.INCOMPLETE:
        return _resume_incomplete(user=user, customer=customer, state=state, wish=wish, now=now)
    if state.currency != wish.currency:
        raise CurrencyFixed(f"The running subscription is in {state.currency}.", currency=state.currency)
    return _change(user=user, customer=customer, state=state, wish=wish, now=now)


def _begin(*, user: User, customer: Customer, wish: Wish, now: datetime) -> SubscriptionState | None:
    if not get_billing_client().has_payment_method(customer_id=customer.stripe_customer_id):
        raise PaymentMethodRequired("Capture a card with getSetupIntent first.")
    parameters = {
        "customer": customer.stripe_customer_id,
        "amount_minor": wish.amount_minor,
        "currency": wish.currency,
        "cancels_at_period_end": wish.cancels_at_period_end,
    }
    operation = operations.begin(user=user, kind=_Kind.CREATE_SUBSCRIPTION, parameters=parameters, now=now)
    if Subscription.objects.living().filter(user_id=user.pk).exists():
        operations.finish(operation=operation, outcome="already begun", now=now)
        return None
    return carry_out(operation=operation, customer=customer, now=now)


def _change(
    *, user: User, customer: Customer, state: SubscriptionState, wish: Wish, now: datetime
) -> SubscriptionState:
    same_amount = state.amount_minor == wish.amount_minor
    if same_amount and state.cancels_at_period_end == wish.cancels_at_period_end:
        return state
    parameters = {
        "subscription": state.subscription_id,
        "item": state.item_id,
        "amount_minor": None if same_amount else wish.amount_minor,
        "currency": wish.currency,
        "cancels_at_period_end": wish.cancels_at_period_end,
    }
    operation = operations.begin(user=user, kind=_Kind.UPDATE_SUBSCRIPTION, parameters=parameters, now=now)
    return carry_out(operation=operation, customer=customer, now=now)


def _resume_incomplete(
    *, user: User, customer: Customer, state: SubscriptionState, wish: Wish, now: datetime
) -> SubscriptionState | None:
    # The wallet has just captured another card, and its webhook may still be on its way.
    get_billing_client().use_newest_card(customer_id=customer.stripe_customer_id)
    if Wish(state.amount_minor, state.currency, state.cancels_at_period_end) == wish:
        get_billing_client().pay_open_invoice(invoice_id=state.latest_invoice_id)
        return look(customer=customer, subscription_id=state.subscription_id, now=now)
    _end_now(user=user, customer=customer, subscription_id=state.subscription_id, now=now)
    return None


def cancel(*, user: User, immediately: bool, now: datetime) -> Subscription:
    """
    End the user's subscription, at once or with the running period.

    Ending at once ends the allowance without a refund; credits stay. To end it with the period once
    more changes nothing; what has ended is no subscription to end.

    Raises:
        NoSubscription: there is none to end.
        BillingUnavailable, BillingInProgress: repeat later.
    """
    living = Subscription.objects.select_related("customer").living().filter(user_id=user.pk).first()
    if living is None:
        raise NoSubscription("There is no running subscription.")
    customer = living.customer
    state = look(customer=customer, subscription_id=living.stripe_subscription_id, now=now)
    if state.status not in Subscription.ENDED:
        if immediately or state.status == Subscription.Status.INCOMPLETE:
            _end_now(user=user, customer=customer, subscription_id=state.subscription_id, now=now)
        else:
            wish = Wish(state.amount_minor, state.currency, cancels_at_period_end=True)
            _change(user=user, customer=customer, state=state, wish=wish, now=now)
    return Subscription.objects.select_related("customer").get(pk=living.pk)


def _end_now(*, user: User, customer: Customer, subscription_id: str, now: datetime) -> SubscriptionState:
    operation = operations.begin(
        user=user, kind=_Kind.CANCEL_SUBSCRIPTION, parameters={"subscription": subscription_id}, now=now
    )
    return carry_out(operation=operation, customer=customer, now=now)


def _outcome(*, customer: Customer, state: SubscriptionState) -> Subscription:
    """Return the stored subscription, unless its first payment is still missing."""
    if state.status == Subscription.Status.INCOMPLETE:
        if state.decline_code:
            raise CardDeclined(
                "The card was declined. Capture another one and repeat.", declineCode=state.decline_code
            )
        raise AuthenticationRequired(
            "The card holder must confirm the payment.", clientSecret=state.payment_client_secret
        )
    return Subscription.objects.get(stripe_subscription_id=state.subscription_id, customer=customer)
