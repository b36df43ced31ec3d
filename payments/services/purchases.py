"""
Purchases of credits: a pack or an amount, paid at once by a one-off invoice at Stripe.

1. `buy` commits an open purchase under the caller's key; the purchase's id is the idempotency key at Stripe.
2. `buy` creates the invoice, collects it with the newest card, and applies Stripe's new state, as a webhook does.
3. A repeat with the same key tries to collect the same invoice again, until it is paid.

A process that dies in between leaves an open purchase: a repeat continues it, the webhook pays it out if it was paid,
and `close_unpaid` voids it after a day. If Stripe refuses for good, the purchase ends with Stripe's reason, so that it
blocks no later one.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.db import IntegrityError, transaction

from gateway.common.errors import DomainError
from gateway.common.tasks import Sweep
from payments.amounts import display_amount, payout_credits
from payments.errors import (
    AuthenticationRequired,
    BillingInProgress,
    BillingRefused,
    BillingUnavailable,
    CardDeclined,
    CurrencyFixed,
    CustomerBalanceLeft,
    PaymentMethodRequired,
    PaymentProcessing,
    PurchaseClosed,
    PurchaseDiffers,
    UnknownPack,
    is_lasting,
    reason_of,
)
from payments.models import AutoTopUp, CreditPack, Customer, PayoutRate, Purchase
from payments.queries import fixed_currency_of
from payments.services import synchronisation
from payments.services.customers import with_customer
from payments.services.operations import KEY_LIFETIME
from payments.services.payouts import rate_in_force
from payments.services.snapshots import Snapshot, fetch_and_apply, invoice_snapshot
from payments.services.subscriptions import SubscriptionRequest, check_sellable
from payments.stripe import get_billing_client
from sponsors.models import Sponsor
from users.models import User

# About a day, like Stripe's own limit for the first invoice of a subscription.
PAYABLE_FOR = KEY_LIFETIME
_MAX_CLOSED = 100
_Status = Purchase.Status


@dataclass(frozen=True, slots=True)
class Order:
    """
    The item of a purchase: a pack, or an amount in minor units that the user chose.

    The user pays; a `sponsor`, if set, gets the credits instead of the user.
    """

    amount_minor: int
    currency: str
    pack: CreditPack | None = None
    top_up: AutoTopUp | None = None
    sponsor: Sponsor | None = None

    @property
    def bonus_credits(self) -> int:
        return self.pack.bonus_credits if self.pack else 0

    def is_of(self, purchase: Purchase) -> bool:
        """Return whether the purchase is of the same order; ignores the bonus, which may have changed since."""
        return (purchase.amount_minor, purchase.currency, purchase.pack_id, purchase.sponsor_id) == (
            self.amount_minor,
            self.currency,
            self.pack.pk if self.pack else None,
            self.sponsor.pk if self.sponsor else None,
        )


def offered_pack(code: str) -> CreditPack:
    """
    Return the offered pack with this code.

    Raises:
        UnknownPack: no such pack is offered.
    """
    pack = CreditPack.objects.filter(code=code, is_offered=True).first()
    if pack is None:
        raise UnknownPack("No pack with this name is offered. Choose one from the list of packs.")
    return pack


def buy(*, user: User, order: Order, key: str, now: datetime) -> Purchase:
    """
    Buy credits; a repeat with the same key buys nothing more.

    Raises:
        CurrencyNotSupported, AmountTooSmall, AmountTooLarge, RateMissing, CurrencyFixed: the order is not possible.
        BillingRefused: Stripe refuses it for good, so the purchase was voided; `AddressRequired` names the next step.
        CustomerBalanceLeft: Stripe keeps a balance that would change the payment; the purchase was voided.
        PaymentMethodRequired, CardDeclined, AuthenticationRequired: the card cannot pay now; retry with the same key.
        PurchaseDiffers, PurchaseClosed: the key belongs to another order, or to a purchase that was voided.
        PaymentProcessing: the bank has not decided about this purchase, or about the user's open one.
        BillingInProgress: an earlier purchase was paid just now.
    """
    known = Purchase.objects.filter(user_id=user.pk, idempotency_key=key).first()
    if known is not None and not order.is_of(known):
        raise PurchaseDiffers("The key was used for another purchase. Use a new key.")
    if known is not None and known.status == _Status.PAID:
        return known
    check_order(order, user=user, now=now)
    return with_customer(
        user=user, now=now, act=partial(_buy, user=user, order=order, key=key, known=known, now=now)
    )


def check_order(order: Order, *, user: User, now: datetime) -> None:
    """
    Refuse an order that this user cannot pay, or that would give no credits.

    Raises:
        CurrencyNotSupported, AmountTooSmall, AmountTooLarge, RateMissing, CurrencyFixed: the reason.
    """
    fixed = fixed_currency_of(user)
    if fixed not in {None, order.currency}:
        raise CurrencyFixed.to(fixed)
    check_sellable(request=SubscriptionRequest(order.amount_minor, order.currency, False))
    rate_in_force(currency=order.currency, at=now)


def _buy(
    customer: Customer, *, user: User, order: Order, key: str, known: Purchase | None, now: datetime
) -> Purchase:
    if known is None:
        require_card(customer)
        _replace_open(user=user, key=key, now=now)
        known = place(customer=customer, order=order, key=key, now=now)
    # The customer of an earlier request may have been deleted at Stripe.
    if known.customer_id != customer.pk or now - known.created_at > PAYABLE_FOR:
        end(known, now=now)
    if known.status == _Status.PAID:
        return known
    if known.status == _Status.VOID:
        raise PurchaseClosed("This purchase was refused, not paid in time, or replaced. Use a new key.")
    return collect(known, now=now)


def require_card(customer: Customer) -> None:
    """Make the newest card the default; without a card, raise PaymentMethodRequired."""
    if not get_billing_client().has_payment_method(customer_id=customer.stripe_customer_id):
        raise PaymentMethodRequired("Save a card with getSetupIntent first.")


def place(*, customer: Customer, order: Order, key: str, now: datetime) -> Purchase:
    """
    Store an open purchase, or return that of the same key.

    Raises:
        BillingInProgress: the user has another open purchase.
        PurchaseDiffers: the key belongs to another order.
    """
    try:
        with transaction.atomic(durable=True):
            return store(customer=customer, order=order, key=key, now=now)
    except IntegrityError:
        same = Purchase.objects.filter(user_id=customer.user_id, idempotency_key=key).first()
    if same is None:
        raise BillingInProgress("Another purchase is in progress.", retry_after=2)
    if not order.is_of(same):
        raise PurchaseDiffers("The key was used for another purchase. Use a new key.")
    return same


def store(*, customer: Customer, order: Order, key: str, now: datetime) -> Purchase:
    """Insert an open purchase, in the caller's transaction."""
    return Purchase.objects.create(
        user_id=customer.user_id,
        customer=customer,
        idempotency_key=key,
        pack=order.pack,
        top_up=order.top_up,
        sponsor=order.sponsor,
        amount_minor=order.amount_minor,
        currency=order.currency,
        bonus_credits=order.bonus_credits,
        created_at=now,
    )


def _replace_open(*, user: User, key: str, now: datetime) -> None:
    """
    Void the user's open purchase, unless it has this key, as one from a concurrent request may.

    Raises:
        BillingInProgress: it was paid in the meantime, so the user may not want another one.
    """
    others = Purchase.objects.filter(user_id=user.pk, status=_Status.OPEN).exclude(idempotency_key=key)
    earlier = others.select_related("customer").first()
    if earlier is not None and end(earlier, now=now).status == _Status.PAID:
        raise BillingInProgress(
            "An earlier purchase was paid just now. Check the balance, then repeat.", retry_after=2
        )


def collect(purchase: Purchase, *, now: datetime, may_pay: Callable[[], bool] = lambda: True) -> Purchase:
    """
    Collect an open purchase with the newest card, and pay it out. Right before the charge, `may_pay` may still stop it.

    Raises:
        CardDeclined, AuthenticationRequired, PaymentMethodRequired: the card cannot pay now.
        PaymentProcessing: the bank has not decided about the payment.
        PurchaseClosed: the invoice was voided.
        DomainError: Stripe refuses for good; the purchase was voided.
    """
    if not purchase.stripe_invoice_id:
        _require_no_balance(purchase, now=now)
    invoice_id = _invoice_of(purchase, now=now)
    require_card(purchase.customer)
    try:
        if may_pay():
            get_billing_client().pay_invoice(invoice_id=invoice_id)
        read(purchase, now=now)
    except BillingRefused as refusal:
        purchase.refresh_from_db()  # A concurrent request may have voided it.
        is_ours = purchase.status == _Status.OPEN
        if is_ours and end(purchase, now=now, failure_code=reason_of(refusal)).status == _Status.VOID:
            raise
    if purchase.status == _Status.PAID:
        return purchase
    if purchase.status == _Status.VOID:
        raise PurchaseClosed("The invoice was voided. Use a new key.")
    payment = get_billing_client().open_payment(invoice_id=invoice_id)
    if payment.client_secret:
        raise AuthenticationRequired(
            "The card holder must confirm the payment.", clientSecret=payment.client_secret
        )
    if payment.is_processing:
        raise PaymentProcessing
    if payment.decline_code:
        raise CardDeclined(
            "The card was declined. Save another card and retry.", declineCode=payment.decline_code
        )
    raise BillingInProgress("The payment is in progress.", retry_after=2)


def _require_no_balance(purchase: Purchase, *, now: datetime) -> None:
    """Void the purchase if Stripe would settle another sum with it: the customer's balance at Stripe."""
    currency = purchase.currency
    balance = get_billing_client().customer_balance(
        customer_id=purchase.customer.stripe_customer_id, currency=currency
    )
    if balance:
        _void(purchase, failure_code=CustomerBalanceLeft.code, now=now)
        purchase.refresh_from_db()
        kept = display_amount(amount_minor=abs(balance), currency=currency)
        raise CustomerBalanceLeft(
            f"Stripe keeps {'a credit' if balance < 0 else 'a debt'} of {kept} for you, which would change this "
            "payment. Ask support to settle it.",
            balance=balance,
            currency=currency,
        )


def _invoice_of(purchase: Purchase, *, now: datetime) -> str:
    """Return the id of the purchase's invoice at Stripe; create the invoice on the first call."""
    if not purchase.stripe_invoice_id:
        try:
            purchase.stripe_invoice_id = get_billing_client().create_purchase(
                customer_id=purchase.customer.stripe_customer_id,
                amount_minor=purchase.amount_minor,
                currency=purchase.currency,
                key=str(purchase.pk),
                has_expired_key=now - purchase.created_at > KEY_LIFETIME,
            )
        except DomainError as error:
            if is_lasting(error):
                _void(purchase, failure_code=reason_of(error), now=now)
            raise
        Purchase.objects.filter(pk=purchase.pk, stripe_invoice_id="").update(
            stripe_invoice_id=purchase.stripe_invoice_id
        )
    return purchase.stripe_invoice_id


def read(purchase: Purchase, *, now: datetime) -> None:
    """Read the purchase's invoice from Stripe and apply its state, as an event about it does."""
    client = get_billing_client()
    fetch_and_apply(
        fetch=lambda: invoice_snapshot(client.retrieve_invoice(invoice_id=purchase.stripe_invoice_id)),
        apply=partial(_apply, now=now),
    )
    purchase.refresh_from_db()


@transaction.atomic(durable=True)
def _apply(snapshot: Snapshot, *, now: datetime) -> None:
    snapshot.apply(cause="purchase", now=now)


def end(purchase: Purchase, *, now: datetime, failure_code: str = "") -> Purchase:
    """
    Void an open purchase so that it is never collected; if it was paid in the meantime, pay it out instead.

    `failure_code` is stored if the purchase was not paid.

    Raises:
        PaymentProcessing: the bank has not decided about its payment; it stays open.
    """
    # Nothing more can be done at Stripe after a lasting refusal. A payment that arrives all the same is paid out.
    with _lasting_refusals_ignored():
        if purchase.status == _Status.OPEN and not synchronisation.note_if_deleted(
            customer=purchase.customer, now=now
        ):
            # If the response to the invoice's creation was lost, `_invoice_of` finds the invoice.
            get_billing_client().void_invoice(invoice_id=_invoice_of(purchase, now=now))
            read(purchase, now=now)  # Refused after a draft was deleted.
    _void(purchase, failure_code=failure_code, now=now)
    purchase.refresh_from_db()
    return purchase


@contextmanager
def _lasting_refusals_ignored() -> Iterator[None]:
    try:
        yield
    except DomainError as error:
        if not is_lasting(error):
            raise


def _void(purchase: Purchase, *, failure_code: str, now: datetime) -> None:
    unpaid = Purchase.objects.filter(pk=purchase.pk).exclude(status=_Status.PAID)
    unpaid.filter(status=_Status.OPEN).update(status=_Status.VOID, finished_at=now)
    if failure_code:
        unpaid.update(failure_code=failure_code[:40])


def close_unpaid(*, now: datetime) -> int:
    """Void the purchases that were not paid within a day; return how many."""
    sweep = Sweep("purchase")
    overdue = Purchase.objects.filter(
        status=_Status.OPEN, top_up=None, created_at__lt=now - PAYABLE_FOR
    ).select_related("customer")
    try:
        for purchase in overdue.order_by("created_at")[:_MAX_CLOSED]:
            with sweep.item(purchase.pk):
                end(purchase, now=now)
    except BillingUnavailable:
        pass
    return sweep.succeeded


def credits_of(pack: CreditPack, rate: PayoutRate) -> int:
    """Return the credits that the pack gives at this rate, bonus included, if no tax is in its price."""
    at_rate = payout_credits(
        collected_minor=pack.amount_minor, credits_per_major_unit=rate.credits_per_major_unit
    )
    return at_rate + pack.bonus_credits
