"""
Automatic top-up: with a user's consent, the service buys a pack when few credits are left.

`run` is a periodic task, so that a relay call never waits for a purchase. A conditional UPDATE of the consent claims it
for one purchase; under the lock of this row, the service then checks the month's limit. A purchase that fails pauses
the top-up until the user consents again, so it is not retried in a loop.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from gateway.common.errors import DomainError, InvalidRequest
from gateway.common.tasks import Sweep
from payments.errors import (
    AddressRequired,
    AuthenticationRequired,
    BillingRefused,
    BillingUnavailable,
    CardDeclined,
    CurrencyFixed,
    CustomerBalanceLeft,
    PaymentMethodRequired,
)
from payments.models import AutoTopUp, CreditPack, Customer, Payout, Purchase
from payments.services import purchases
from payments.services.customers import with_customer
from payments.services.payouts import rate_in_force
from payments.services.purchases import Order
from users.models import User

# The least time between two purchases, longer than a purchase takes. Users who need credits sooner can buy them.
COOLDOWN = timedelta(minutes=10)
_ABANDONED_AFTER = timedelta(minutes=1)
_MAX_BEGUN = 200
_Reason = AutoTopUp.PausedReason
_Status = Purchase.Status


@dataclass(frozen=True, slots=True)
class Terms:
    """The automatic purchases to which a user consents."""

    threshold: int
    pack: str
    monthly_limit_minor: int
    consent: str


def consent(*, user: User, terms: Terms, now: datetime) -> AutoTopUp:
    """
    Turn automatic top-up on with these terms, and withdraw any earlier consent.

    Raises:
        UnknownPack: the pack is not offered.
        InvalidRequest: the month's limit is below the price of one pack, or the threshold above its credits.
        CurrencyFixed: the user has a subscription in another currency.
        PaymentMethodRequired: the user has no card.
    """
    pack = purchases.offered_pack(terms.pack)
    if terms.monthly_limit_minor < pack.amount_minor:
        raise _invalid("monthlyLimit", "min_value", f"At least the price of the pack, {pack.amount_minor}.")
    purchases.check_order(Order(pack.amount_minor, pack.currency, pack), user=user, now=now)
    gives = purchases.credits_of(pack, rate_in_force(currency=pack.currency, at=now))
    if terms.threshold > gives:
        # Every purchase would leave the balance below the threshold, and so lead to another one.
        raise _invalid(
            "threshold", "max_value", f"At most the {gives:,} credits of the pack, or choose a larger pack."
        )
    with_customer(user=user, now=now, act=purchases.require_card)
    with transaction.atomic(durable=True):
        # The lock serialises two consents of one user.
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        in_force(user).update(withdrawn_at=now)
        return AutoTopUp.objects.create(
            user=user,
            pack=pack,
            threshold=terms.threshold,
            amount_minor=pack.amount_minor,
            currency=pack.currency,
            bonus_credits=pack.bonus_credits,
            monthly_limit_minor=terms.monthly_limit_minor,
            consent=terms.consent,
            consented_at=now,
        )


def _invalid(field: str, code: str, detail: str) -> InvalidRequest:
    fault = {"pointer": f"/{field}", "code": code, "detail": detail}
    return InvalidRequest(f"Correct the field {field}.", errors=[fault])


def withdraw(*, user: User, now: datetime) -> None:
    """Turn automatic top-up off. A purchase in progress that is not paid yet will not be charged."""
    in_force(user).update(withdrawn_at=now)


def in_force(user: User) -> QuerySet[AutoTopUp]:
    return AutoTopUp.objects.filter(user_id=user.pk, withdrawn_at=None)


def current_or_last(user: User) -> AutoTopUp | None:
    """Return the consent in force, else the one given last."""
    rows = AutoTopUp.objects.select_related("pack").filter(user_id=user.pk)
    return rows.order_by(F("withdrawn_at").desc(nulls_first=True), "-pk").first()


def spent_minor(top_up: AutoTopUp, *, now: datetime) -> int:
    """Return the cost of the user's automatic purchases of this UTC month, including open but not voided ones."""
    begins_at = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    rows = Purchase.objects.filter(
        user_id=top_up.user_id, top_up__isnull=False, created_at__gte=begins_at, currency=top_up.currency
    )
    spent: int = rows.exclude(status=_Status.VOID).aggregate(total=Sum("amount_minor", default=0))["total"]
    return spent


def run(*, now: datetime) -> int:
    """Begin and finish every purchase that is due; return how many were paid."""
    sweep, paid = Sweep("top-up"), 0
    try:
        for purchase in _abandoned(now):
            with sweep.item(purchase.pk):
                paid += _finish(purchase, now=now)
        for top_up in _due(now)[:_MAX_BEGUN]:
            with sweep.item(top_up.pk):
                paid += _top_up(top_up, now=now)
    except BillingUnavailable:
        pass
    sweep.finish()
    return paid


def _due(now: datetime) -> QuerySet[AutoTopUp]:
    """Return the consents of users who have too few credits; one statement over the consents in force."""
    available = F("user__credit_account__balance") - F("user__credit_account__held")
    rows = AutoTopUp.objects.annotate(available=Coalesce(available, 0)).filter(available__lt=F("threshold"))
    return _active(rows, now).select_related("user", "pack").order_by("pk")


def _active(rows: QuerySet[AutoTopUp], now: datetime) -> QuerySet[AutoTopUp]:
    rested = Q(last_tried_at=None) | Q(last_tried_at__lte=now - COOLDOWN)
    return rows.filter(rested, withdrawn_at=None, paused_at=None)


def _abandoned(now: datetime) -> list[Purchase]:
    """Return open automatic purchases to continue: their process has died, or Stripe did not respond."""
    rows = Purchase.objects.filter(
        status=_Status.OPEN, top_up__isnull=False, created_at__lt=now - _ABANDONED_AFTER
    )
    return list(rows.select_related("customer", "top_up").order_by("created_at")[:_MAX_BEGUN])


def _top_up(top_up: AutoTopUp, *, now: datetime) -> bool:
    pack = top_up.pack
    if not pack.is_offered or _terms_of(pack) != _terms_of(top_up):
        pause(top_up, _Reason.PACK_CHANGED, now=now)
        return False
    customer = Customer.objects.current().filter(user_id=top_up.user_id).first()
    if customer is None:
        pause(top_up, _Reason.PAYMENT_METHOD_REQUIRED, now=now)
        return False
    purchase = _begin(top_up, customer=customer, now=now)
    return purchase is not None and _finish(purchase, now=now)


def _terms_of(row: CreditPack | AutoTopUp) -> tuple[int, str, int]:
    return row.amount_minor, row.currency, row.bonus_credits


def _begin(top_up: AutoTopUp, *, customer: Customer, now: datetime) -> Purchase | None:
    """Store an open purchase; None if another process was first, the limit is reached, or the user is buying."""
    order = Order(top_up.amount_minor, top_up.currency, top_up.pack, top_up)
    try:
        with transaction.atomic(durable=True):
            if not _active(AutoTopUp.objects.filter(pk=top_up.pk), now).update(last_tried_at=now):
                return None
            if spent_minor(top_up, now=now) + order.amount_minor > top_up.monthly_limit_minor:
                return None
            return purchases.store(customer=customer, order=order, key="", now=now)
    except IntegrityError:
        return None


def _finish(purchase: Purchase, *, now: datetime) -> bool:
    """
    Collect the purchase; if it cannot be paid, void it and pause the top-up. Return whether it was paid.

    Raises:
        DomainError: the purchase stays open, because Stripe is away, or the bank has not decided.
    """
    top_up = purchase.top_up
    assert top_up is not None  # noqa: S101 - the caller has chosen automatic ones
    may_pay = partial(_is_in_force, top_up)
    try:
        if may_pay():
            purchases.collect(purchase, now=now, may_pay=may_pay)
    except DomainError as error:
        if error.retryable:
            raise
        return _fail(purchase, top_up, error, now=now)
    if purchase.status != _Status.PAID:
        return _give_up(purchase, now=now)
    if not Payout.objects.filter(stripe_invoice_id=purchase.stripe_invoice_id).exists():
        pause(top_up, _Reason.NO_CREDITS, now=now)
    return True


def _is_in_force(top_up: AutoTopUp) -> bool:
    return AutoTopUp.objects.filter(pk=top_up.pk, withdrawn_at=None, paused_at=None).exists()


_REASONS: tuple[tuple[type[DomainError], _Reason], ...] = (
    (CardDeclined, _Reason.CARD_DECLINED),
    (AuthenticationRequired, _Reason.AUTHENTICATION_REQUIRED),
    (PaymentMethodRequired, _Reason.PAYMENT_METHOD_REQUIRED),
    (CurrencyFixed, _Reason.CURRENCY_FIXED),
    (AddressRequired, _Reason.ADDRESS_REQUIRED),
    (CustomerBalanceLeft, _Reason.BILLING_REFUSED),
    (BillingRefused, _Reason.BILLING_REFUSED),
)


def _fail(purchase: Purchase, top_up: AutoTopUp, error: DomainError, *, now: datetime) -> bool:
    """Pause the top-up because of the error, and void the purchase; return whether it was paid after all."""
    reason = next((reason for kind, reason in _REASONS if isinstance(error, kind)), None)
    if reason is not None:  # Otherwise the user has withdrawn the consent, or is buying credits.
        pause(top_up, reason, now=now, decline_code=str(error.members.get("declineCode", "")))
    return _give_up(purchase, now=now)


def _give_up(purchase: Purchase, *, now: datetime) -> bool:
    paused = AutoTopUp.objects.filter(purchases=purchase).values_list("paused_reason", flat=True)
    return purchases.end(purchase, now=now, failure_code=paused.get()).status == _Status.PAID


def pause(top_up: AutoTopUp, reason: _Reason, *, now: datetime, decline_code: str = "") -> None:
    """Pause automatic top-up until the user consents again."""
    rows = AutoTopUp.objects.filter(pk=top_up.pk, paused_at=None)
    rows.update(paused_at=now, paused_reason=reason, decline_code=decline_code[:64])
