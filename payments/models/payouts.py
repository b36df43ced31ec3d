"""Payouts and clawbacks, written only from data just read from Stripe."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Self, TypedDict, cast

import pgtrigger
from django.conf import settings
from django.db import models
from django.db.models import F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from credits.models import EntrySource
from gateway.common.models import APPEND_ONLY
from payments.models.customers import Customer

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations


class PeriodTotals(TypedDict):
    """Credits that all payouts of one period paid out, and that were taken back."""

    period_paid_out: int
    period_taken_back: int


class PayoutQuerySet(models.QuerySet["Payout"]):
    def paid_by(self, payment_intent_ids: Iterable[str]) -> Self:
        """Keep payouts whose invoice one of these payments has paid."""
        intents = [intent for intent in payment_intent_ids if intent]
        further = FurtherPayment.objects.filter(stripe_payment_intent_id__in=intents)
        return self.filter(Q(stripe_payment_intent_id__in=intents) | Q(pk__in=further.values("payout")))

    def with_period(self) -> "QuerySet[WithAnnotations[Payout, PeriodTotals]]":
        """Annotate with the credits paid out and taken back by all payouts of the same subscription and period end."""
        same = {"subscription": OuterRef("subscription"), "period_end": OuterRef("period_end")}
        of_payout = {f"payout__{name}": value for name, value in same.items()}
        paid = Payout.objects.filter(**same).order_by().values("subscription")
        taken = Clawback.objects.filter(**of_payout).order_by().values("payout__subscription")
        total = models.Sum("credits")
        annotated = self.annotate(
            period_paid_out=Coalesce(Subquery(paid.annotate(total=total).values("total")), 0),
            period_taken_back=Coalesce(Subquery(taken.annotate(total=total).values("total")), 0),
        )
        return cast("QuerySet[WithAnnotations[Payout, PeriodTotals]]", annotated)


class Payout(models.Model):
    """
    The credits paid out for one paid invoice: of a subscription period, or of a purchase. Amounts are in minor units.

    A purchase has no subscription and no period. `user` is the payer; if the purchase was for a sponsor, the sponsor
    has the credits.
    """

    # An invoice number in Stripe's default form: the customer's prefix and a counter.
    NUMBER: ClassVar = re.compile(r"[A-Z0-9]{3,12}(-[A-Z0-9]{1,12})+")

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="payouts")
    subscription = models.ForeignKey(
        "payments.Subscription", models.PROTECT, null=True, related_name="payouts"
    )
    # No index: the payout of a purchase is found by the invoice's id.
    purchase = models.ForeignKey(
        "payments.Purchase", models.PROTECT, null=True, related_name="+", db_index=False
    )
    stripe_invoice_id = models.CharField(max_length=255, unique=True)
    invoice_number = models.CharField(
        max_length=64, blank=True, default="", help_text="The number on the payer's invoice."
    )
    # Indexed to find the payout of a refund or dispute, which names only the payment.
    stripe_payment_intent_id = models.CharField(max_length=255, blank=True, default="", db_index=True)
    amount_minor = models.BigIntegerField(help_text="Money collected for our product, without tax.")
    tax_minor = models.BigIntegerField(default=0, help_text="Tax collected with it.")
    other_minor = models.BigIntegerField(
        default=0,
        db_default=0,
        help_text="Money collected with it for the invoice's lines of other products.",
    )
    refunded_minor = models.BigIntegerField(
        default=0, db_default=0, help_text="Money returned by refunds, including tax."
    )
    disputed_minor = models.BigIntegerField(
        default=0, db_default=0, help_text="Money withdrawn by disputes, including tax."
    )
    fraud_warned_at = models.DateTimeField(
        null=True, help_text="When a card network first warned of fraud in this payment."
    )
    currency = models.CharField(max_length=3)
    country = models.CharField(
        max_length=2,
        blank=True,
        default="",
        db_default="",
        help_text="The payer's, where Stripe computes tax.",
    )
    period_start = models.DateTimeField(null=True)
    period_end = models.DateTimeField(null=True)
    rate = models.ForeignKey("payments.PayoutRate", models.PROTECT, related_name="payouts")
    credits = models.BigIntegerField()
    bonus_credits = models.BigIntegerField(
        default=0, db_default=0, help_text="The part of the credits that a pack gives beyond the rate."
    )
    entry = models.OneToOneField("credits.CreditEntry", models.PROTECT, related_name="payout")
    created_at = models.DateTimeField()

    objects = PayoutQuerySet.as_manager()

    class Meta:
        permissions = [
            ("export_payout", "Can export payouts"),
            ("refund_payout", "Can request refunds"),
            ("decide_refund", "Can decide other people's requests for refunds"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(amount_minor__gt=0, credits__gt=0), name="payout_positive"),
            models.CheckConstraint(
                condition=Q(period_start__lt=F("period_end")), name="payout_period_in_order"
            ),
            models.CheckConstraint(
                condition=Q(
                    subscription__isnull=False,
                    period_start__isnull=False,
                    period_end__isnull=False,
                    purchase__isnull=True,
                )
                | Q(
                    subscription__isnull=True,
                    period_start__isnull=True,
                    period_end__isnull=True,
                    purchase__isnull=False,
                ),
                name="payout_of_period_or_purchase",
            ),
            models.CheckConstraint(
                condition=Q(bonus_credits__gte=0, bonus_credits__lte=F("credits")),
                name="payout_bonus_within_credits",
            ),
        ]
        indexes = [
            models.Index(
                fields=["invoice_number"], condition=~Q(invoice_number=""), name="payout_of_invoice_number"
            ),
            models.Index(
                fields=["fraud_warned_at"],
                condition=Q(fraud_warned_at__isnull=False),
                name="payout_fraud_warned",
            ),
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.ReadOnly(
                name="only_returns_change", exclude=["refunded_minor", "disputed_minor", "fraud_warned_at"]
            )
        ]

    def __str__(self) -> str:
        return self.stripe_invoice_id

    @property
    def customer(self) -> Customer:
        """The customer who paid."""
        if self.subscription is not None:
            return self.subscription.customer
        assert self.purchase is not None  # noqa: S101 - by a constraint
        return self.purchase.customer

    @property
    def sponsor_id(self) -> int | None:
        """The sponsor that has the credits; None if the payer has them."""
        return self.purchase.sponsor_id if self.purchase is not None else None

    @property
    def source(self) -> EntrySource:
        """The source of the payout's ledger entry."""
        return EntrySource.CREDIT_PURCHASE if self.subscription_id is None else EntrySource.SUBSCRIBED_PAYOUT

    @property
    def is_refundable(self) -> bool:
        """Whether a payment at Stripe collected the money, so that it can be refunded."""
        return bool(self.stripe_payment_intent_id)

    @property
    def charged_minor(self) -> int:
        """The amount charged to the card, tax included; refunds and disputes return parts of it."""
        return self.amount_minor + self.tax_minor + self.other_minor

    @property
    def returned_minor(self) -> int:
        """The part of the charged amount that refunds and disputes have returned."""
        return self.refunded_minor + self.disputed_minor

    @property
    def kept_minor(self) -> int:
        """The collected amount that refunds and disputes leave, without tax."""
        returned = min(self.returned_minor, self.charged_minor)
        return self.amount_minor - self.amount_minor * returned // self.charged_minor

    def payment_ids(self) -> list[str]:
        """Return the payment intents of all payments of the invoice; one statement."""
        further = self.further_payments.values_list("stripe_payment_intent_id", flat=True)
        return (
            [self.stripe_payment_intent_id, *further.order_by("pk")] if self.stripe_payment_intent_id else []
        )

    def credits_taken_back(self) -> int:
        """Return the credits that clawbacks have taken back, less those restored; one statement."""
        taken: int | None = self.clawbacks.aggregate(credits=models.Sum("credits"))["credits"]
        return taken or 0

    def is_taken_back(self) -> bool:
        """Whether clawbacks have taken back all of the payout's credits; one statement."""
        return self.credits_taken_back() >= self.credits


class FurtherPayment(models.Model):
    """A further payment of a payout's invoice, if several payments were needed."""

    payout = models.ForeignKey("payments.Payout", models.PROTECT, related_name="further_payments")
    stripe_payment_intent_id = models.CharField(max_length=255, unique=True)

    class Meta:
        triggers: ClassVar[list[pgtrigger.Trigger]] = [APPEND_ONLY]

    def __str__(self) -> str:
        return self.stripe_payment_intent_id


class Clawback(models.Model):
    """Credits of a payout that were taken back; negative if they were restored because money was reinstated."""

    payout = models.ForeignKey("payments.Payout", models.PROTECT, related_name="clawbacks")
    key = models.CharField(max_length=300, unique=True)
    credits = models.BigIntegerField()
    entry = models.OneToOneField("credits.CreditEntry", models.PROTECT, null=True, related_name="clawback")
    created_at = models.DateTimeField()

    class Meta:
        permissions = [("export_clawback", "Can export clawbacks")]
        constraints = [
            models.CheckConstraint(
                condition=Q(credits=0, entry__isnull=True) | (~Q(credits=0) & Q(entry__isnull=False)),
                name="clawback_entry_when_moved",
            )
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [APPEND_ONLY]

    def __str__(self) -> str:
        return self.key
