"""
Payments: customers and subscriptions at Stripe, commands to Stripe, Stripe's events, and payouts.

Rows of customers, subscriptions, payouts and clawbacks are written only from data just read from Stripe.
"""

import re
import uuid
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypedDict, cast

import pgtrigger
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Case, F, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from credits.models import EntrySource
from gateway.common.models import APPEND_ONLY

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations


class PeriodTotals(TypedDict):
    """Credits of a period, by all payouts that were made for it."""

    period_paid_out: int
    period_taken_back: int


class CustomerQuerySet(models.QuerySet["Customer"]):
    def current(self) -> Self:
        """Keep customers that are not deleted at Stripe."""
        return self.filter(deleted_at__isnull=True)


class Customer(models.Model):
    """A user's customer at Stripe. A user has at most one that is not deleted there; deleted ones stay as history."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="billing_customers")
    stripe_customer_id = models.CharField(max_length=255, unique=True)
    # When Stripe's newest stored answer about the customer arrived, by the database's
    # clock. An answer that was requested earlier may be older than the rows.
    last_synced_at = models.DateTimeField(null=True)
    # When we learned that Stripe has deleted the customer, which is permanent.
    deleted_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = CustomerQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user"],
                condition=Q(deleted_at__isnull=True),
                name="customer_one_not_deleted_per_user",
            )
        ]

    def __str__(self) -> str:
        return self.stripe_customer_id


class Settlement(models.TextChoices):
    """How an invoice was settled, or why it was not."""

    WAITING = "waiting", "waits to be collected"
    COLLECTED = "collected", "paid by card"
    BALANCE = "balance", "paid from the customer's balance"
    CREDIT_NOTE = "credit-note", "settled by a credit note"
    OFF_STRIPE = "off-stripe", "paid outside of Stripe"
    CARRIED = "carried", "below the minimum charge: added to the next invoice"
    FREE = "free", "nothing was due"
    VOID = "void", "voided"
    UNCOLLECTIBLE = "uncollectible", "written off"

    @classmethod
    def without_money(cls) -> "set[Settlement]":
        """Those that brought no money to Stripe, and will not."""
        return {*cls} - {cls.WAITING, cls.COLLECTED}

    @classmethod
    def unpaid(cls) -> "set[Settlement]":
        """Those of them after which a card can pay for a month; a balance pays every invoice until it is used up."""
        return cls.without_money() - {cls.BALANCE}


class SubscriptionQuerySet(models.QuerySet["Subscription"]):
    def live(self) -> Self:
        """Keep subscriptions that have not ended at Stripe."""
        return self.exclude(status__in=Subscription.ENDED)

    def kept_first(self) -> Self:
        """Order live subscriptions by which one upsert would keep: active ones first, then the oldest."""
        return self.order_by(Case(When(status=Subscription.Status.ACTIVE, then=0), default=1), "pk")

    def current_or_last(self) -> "Subscription | None":
        """Return a user's live subscription, else the one created last."""
        return self.live().kept_first().first() or self.order_by("-pk").first()


class Subscription(models.Model):
    """
    A subscription to our product. The service creates at most one live one per user; staff can add others.

    Ended ones stay as history; one that lost our product at Stripe has ended for us.
    """

    class Status(models.TextChoices):
        INCOMPLETE = "incomplete"
        INCOMPLETE_EXPIRED = "incomplete_expired"
        TRIALING = "trialing"
        ACTIVE = "active"
        PAST_DUE = "past_due"
        CANCELED = "canceled"
        UNPAID = "unpaid"
        PAUSED = "paused"

    ENDED = (Status.CANCELED, Status.INCOMPLETE_EXPIRED)
    # A renewal was not collected; the subscription continues once its open invoice is paid.
    OVERDUE = (Status.PAST_DUE, Status.UNPAID)
    # An invoice waits for the owner's card.
    COLLECTABLE = (Status.INCOMPLETE, *OVERDUE)

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="subscriptions")
    customer = models.ForeignKey("payments.Customer", models.PROTECT, related_name="subscriptions")
    stripe_subscription_id = models.CharField(max_length=255, unique=True)
    stripe_item_id = models.CharField(max_length=255, db_index=True)
    status = models.CharField(max_length=20, choices=Status)
    amount_minor = models.BigIntegerField(help_text="Amount per month, in minor units.")
    currency = models.CharField(max_length=3)
    current_period_start = models.DateTimeField()
    current_period_end = models.DateTimeField()
    cancels_at_period_end = models.BooleanField(default=False)
    cancels_at = models.DateTimeField(
        null=True, help_text="When Stripe will end it, by a date that was set there."
    )
    is_resting = models.BooleanField(
        default=False, db_default=False, help_text="Stripe makes invoices without collecting them."
    )
    rests_until = models.DateTimeField(
        null=True, help_text="When Stripe collects again, where a date was set."
    )
    latest_invoice = models.CharField(
        max_length=16,
        choices=Settlement,
        blank=True,
        default="",
        db_default="",
        help_text="How it was settled.",
    )
    next_minor = models.BigIntegerField(
        null=True, help_text="What the next invoice will charge, as Stripe last previewed it."
    )
    next_previewed_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    synced_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)

    objects = SubscriptionQuerySet.as_manager()

    class Meta:
        permissions = [("cancel_subscription", "Can cancel a subscription")]
        constraints = [
            models.CheckConstraint(condition=Q(amount_minor__gte=0), name="subscription_amount_not_negative"),
        ]
        indexes = [models.Index(fields=["synced_at"], name="subscription_synced")]

    def __str__(self) -> str:
        return self.stripe_subscription_id

    def renews(self) -> bool:
        """Whether Stripe will try to collect another period."""
        return self.status in {self.Status.ACTIVE, self.Status.PAST_DUE} and not self.cancels_at_period_end

    def payouts_at(self, now: datetime) -> "list[Payout]":
        """Return the payouts of the period that runs then, the month's own before those of changes in between."""
        running = self.payouts.filter(period_start__lte=now, period_end__gt=now)
        return list(running.order_by("period_start", "pk"))

    def outlook(self) -> str:
        """Return the next event of the subscription in words, for staff."""
        if self.status in self.ENDED:
            return "has ended"
        if self.status in self.COLLECTABLE:
            return "waits for a payment by the owner"
        return f"{self._next()}{self._unpaid_month()}"

    def _next(self) -> str:
        if self.is_resting:
            until = f" until {self.rests_until:%Y-%m-%d}" if self.rests_until else ""
            return f"rests{until}: Stripe does not collect its invoices"
        if self.cancels_at_period_end:
            return "ends with its period"
        if self.cancels_at is not None:
            return f"ends on {self.cancels_at:%Y-%m-%d}"
        return {self.Status.PAUSED: "is paused", self.Status.TRIALING: "is on trial"}.get(
            self.Status(self.status), "renews"
        )

    def _unpaid_month(self) -> str:
        """Return how the latest invoice was settled without a payment, which pays out no credits."""
        if self.status != self.Status.ACTIVE or self.latest_invoice not in Settlement.without_money():
            return ""
        return f"; no credits for the latest invoice: {self.get_latest_invoice_display()}"


class BillingOperation(models.Model):
    """One command to Stripe (`services.operations`); its id is the idempotency key. A user has at most one pending."""

    class Kind(models.TextChoices):
        CREATE_CUSTOMER = "create-customer"
        CREATE_SUBSCRIPTION = "create-subscription"
        UPDATE_SUBSCRIPTION = "update-subscription"
        CANCEL_SUBSCRIPTION = "cancel-subscription"

    class Status(models.TextChoices):
        PENDING = "pending"
        DONE = "done"
        REFUSED = "refused"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="billing_operations")
    kind = models.CharField(max_length=24, choices=Kind)
    # The arguments of the client's method, exactly as sent. A request with other arguments is another operation.
    parameters = models.JSONField()
    status = models.CharField(max_length=8, choices=Status, default=Status.PENDING)
    # The id of the object that Stripe created or changed, or Stripe's error code.
    outcome = models.CharField(max_length=255, blank=True, default="")
    attempts = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user"], condition=Q(status="pending"), name="billingoperation_one_pending_per_user"
            ),
        ]
        indexes = [
            models.Index(
                fields=["created_at"], condition=Q(status="pending"), name="billingoperation_pending"
            )
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display().lower()} {self.pk}"


class StripeEvent(models.Model):
    """One delivered event, kept as the bytes that were signed; `services.events` applies it."""

    class Status(models.TextChoices):
        RECEIVED = "received"
        PROCESSED = "processed"
        FAILED = "failed"

    class Outcome(models.TextChoices):
        APPLIED = "applied"
        # Other systems may use the same Stripe account.
        NOT_OURS = "not-ours"
        NOTHING = "nothing", "nothing to do"
        # It could not be applied, and staff have dismissed it.
        DISMISSED = "dismissed"

    stripe_event_id = models.CharField(max_length=255, unique=True)
    type = models.CharField(max_length=80)
    api_version = models.CharField(max_length=40, blank=True, default="")
    # The id of the event's object, which is read from Stripe again when the event is applied.
    object_id = models.CharField(max_length=255)
    raw_body = models.BinaryField()
    # When it happened, by Stripe's clock. No decision depends on this, because events arrive in any order.
    happened_at = models.DateTimeField(null=True)
    status = models.CharField(max_length=10, choices=Status, default=Status.RECEIVED)
    outcome = models.CharField(max_length=9, choices=Outcome, blank=True, default="")
    attempts = models.PositiveIntegerField(default=0)
    last_error = models.TextField(blank=True, default="")
    received_at = models.DateTimeField()
    next_attempt_at = models.DateTimeField()
    processed_at = models.DateTimeField(null=True)

    class Meta:
        permissions = [
            ("process_stripeevent", "Can have an event processed again"),
            ("dismiss_stripeevent", "Can dismiss an event that cannot be applied"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(status="processed", processed_at__isnull=False)
                | (~Q(status="processed") & Q(processed_at__isnull=True)),
                name="stripeevent_processed_has_time",
            )
        ]
        indexes = [
            models.Index(
                fields=["next_attempt_at"],
                condition=Q(status__in=["received", "failed"]),
                name="stripeevent_due",
            ),
            models.Index(fields=["object_id"], name="stripeevent_object"),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.stripe_event_id}"


class PayoutRateQuerySet(models.QuerySet["PayoutRate"]):
    def in_force(self, *, currency: str, at: datetime) -> "PayoutRate | None":
        """Return the currency's rate at that time, or None before its first rate."""
        return self.filter(currency=currency, valid_from__lte=at).order_by("-valid_from").first()


class PayoutRate(models.Model):
    """The credits and experience (on the subscriber track) that collected money pays out from `valid_from` on."""

    currency = models.CharField(max_length=3)
    credits_per_major_unit = models.PositiveIntegerField()
    experience_per_minor_unit = models.PositiveIntegerField(default=1)
    valid_from = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)

    objects = PayoutRateQuerySet.as_manager()

    class Meta:
        permissions = [("decide_payoutrate", "Can decide other people's requests about payout rates")]
        constraints = [
            models.UniqueConstraint(fields=["currency", "valid_from"], name="payoutrate_one_per_moment"),
            models.CheckConstraint(
                condition=Q(credits_per_major_unit__gt=0), name="payoutrate_credits_positive"
            ),
        ]

    def __str__(self) -> str:
        return f"1.00 {self.currency} = {self.credits_per_major_unit} credits from {self.valid_from:%Y-%m-%d}"

    def clean(self) -> None:
        """
        Refuse a rate for an unsupported currency, or one that would change the past.

        A rate may begin in the past only if none was in force then, for payments that wait for a rate.
        """
        if self.currency not in settings.BILLING_CURRENCIES:
            raise ValidationError(
                {"currency": f"Subscriptions are sold in: {', '.join(settings.BILLING_CURRENCIES)}."}
            )
        if self.valid_from is None or self.valid_from > timezone.now():
            return
        if PayoutRate.objects.in_force(currency=self.currency, at=self.valid_from) is not None:
            raise ValidationError(
                {"valid_from": "Another rate was in force then. Choose a time in the future."}
            )


class PayoutQuerySet(models.QuerySet["Payout"]):
    def paid_by(self, payment_intent_ids: Iterable[str]) -> Self:
        """Keep those whose invoice one of these payments has paid."""
        intents = [intent for intent in payment_intent_ids if intent]
        further = FurtherPayment.objects.filter(stripe_payment_intent_id__in=intents)
        return self.filter(Q(stripe_payment_intent_id__in=intents) | Q(pk__in=further.values("payout")))

    def with_period(self) -> "QuerySet[WithAnnotations[Payout, PeriodTotals]]":
        """Add the credits of all payouts of the same subscription and period end, as paid out and as taken back."""
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

    A purchase has no subscription and no period.
    """

    # The customer's prefix and a counter: Stripe's default numbering of invoices.
    NUMBER: ClassVar = re.compile(r"[A-Z0-9]{3,12}(-[A-Z0-9]{1,12})+")

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="payouts")
    subscription = models.ForeignKey(
        "payments.Subscription", models.PROTECT, null=True, related_name="payouts"
    )
    # Found by the invoice's id.
    purchase = models.ForeignKey(
        "payments.Purchase", models.PROTECT, null=True, related_name="+", db_index=False
    )
    stripe_invoice_id = models.CharField(max_length=255, unique=True)
    invoice_number = models.CharField(
        max_length=64, blank=True, default="", help_text="The number on the payer's invoice."
    )
    # Finds the payout of a refund or dispute, which names only the payment.
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
    def source(self) -> EntrySource:
        """The source of its entry."""
        return EntrySource.CREDIT_PURCHASE if self.subscription_id is None else EntrySource.SUBSCRIBED_PAYOUT

    @property
    def is_refundable(self) -> bool:
        """Whether the money was collected by a payment at Stripe, which can be refunded."""
        return bool(self.stripe_payment_intent_id)

    @property
    def charged_minor(self) -> int:
        """The amount charged to the card, tax included; refunds and disputes return parts of it."""
        return self.amount_minor + self.tax_minor + self.other_minor

    @property
    def returned_minor(self) -> int:
        """What refunds and disputes have returned of it."""
        return self.refunded_minor + self.disputed_minor

    @property
    def kept_minor(self) -> int:
        """What is left of the amount after refunds and disputes, without tax."""
        returned = min(self.returned_minor, self.charged_minor)
        return self.amount_minor - self.amount_minor * returned // self.charged_minor

    def payment_ids(self) -> list[str]:
        """Return the payment intents of all payments of its invoice; one statement."""
        further = self.further_payments.values_list("stripe_payment_intent_id", flat=True)
        return (
            [self.stripe_payment_intent_id, *further.order_by("pk")] if self.stripe_payment_intent_id else []
        )

    def credits_taken_back(self) -> int:
        """Return the credits that clawbacks have taken back, less those restored; one statement."""
        taken: int | None = self.clawbacks.aggregate(credits=models.Sum("credits"))["credits"]
        return taken or 0

    def is_taken_back(self) -> bool:
        """Whether clawbacks have taken back all of its credits; one statement."""
        return self.credits_taken_back() >= self.credits


class FurtherPayment(models.Model):
    """A further payment of a payout's invoice, if several payments were needed."""

    payout = models.ForeignKey("payments.Payout", models.PROTECT, related_name="further_payments")
    stripe_payment_intent_id = models.CharField(max_length=255, unique=True)

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

    def __str__(self) -> str:
        return self.key


class MoneyReturn(models.Model):
    """
    A change of the money that was returned of a payout, as it was read from Stripe; negative if it was reinstated.

    The sums of all rows of a payout are its `refunded_minor` and `disputed_minor`, so both are known for any past time.
    """

    payout = models.ForeignKey("payments.Payout", models.PROTECT, related_name="money_returns")
    refunded_minor = models.BigIntegerField(help_text="By refunds, including tax.")
    disputed_minor = models.BigIntegerField(help_text="By disputes, including tax.")
    created_at = models.DateTimeField(db_default=Now(), db_index=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=~Q(refunded_minor=0, disputed_minor=0), name="moneyreturn_not_empty"
            )
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [APPEND_ONLY]

    def __str__(self) -> str:
        return f"{self.payout_id}: {self.refunded_minor:+} refunded, {self.disputed_minor:+} disputed"


class Refund(models.Model):
    """
    A refund by staff to the card that paid for a payout; its id is the idempotency key at Stripe.

    It moves no credits itself. Stripe's event about the refund does, also for refunds made in Stripe's dashboard.
    """

    class Status(models.TextChoices):
        PENDING = "pending", "waits for Stripe"
        DONE = "done", "refunded"
        REFUSED = "refused", "refused by Stripe"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    payout = models.ForeignKey("payments.Payout", models.PROTECT, related_name="refunds")
    amount_minor = models.BigIntegerField(help_text="In the payout's currency.")
    # Payment intents with the amount to refund of each, chosen once before the first request to Stripe.
    parts: Any = models.JSONField(null=True, editable=False)
    # Has the requester, the reason and the approver.
    approval = models.OneToOneField("gateway_admin.ApprovalRequest", models.PROTECT, related_name="+")
    status = models.CharField(max_length=8, choices=Status, default=Status.PENDING)
    # The refund's id at Stripe, or the code of Stripe's refusal.
    outcome = models.CharField(max_length=255, blank=True, default="", db_index=True)
    attempts = models.PositiveIntegerField(default=0)
    last_error = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        permissions = [
            ("send_refund", "Can have a refund sent to Stripe again"),
            ("export_refund", "Can export refunds"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(amount_minor__gt=0), name="refund_amount_positive"),
            models.CheckConstraint(
                condition=Q(status="pending", finished_at=None)
                | ~Q(status="pending") & Q(finished_at__isnull=False) & ~Q(outcome=""),
                name="refund_finished_with_outcome",
            ),
            models.UniqueConstraint(
                fields=["payout"], condition=Q(status="pending"), name="refund_one_pending_per_payout"
            ),
        ]

    def __str__(self) -> str:
        return f"refund of {self.payout}"


class CreditPack(models.Model):
    """Credits that are sold for a fixed price, beside a subscription."""

    code = models.SlugField(max_length=40, unique=True, help_text="Its id in the API, such as usd-10.")
    currency = models.CharField(max_length=3)
    amount_minor = models.BigIntegerField(help_text="Its price with tax, in minor units.")
    bonus_credits = models.BigIntegerField(
        default=0, help_text="Credits beyond those that the payout rate gives for the price."
    )
    is_offered = models.BooleanField(default=True, help_text="Whether it can be bought now.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        permissions = [("decide_creditpack", "Can decide other people's requests about credit packs")]
        constraints = [
            models.CheckConstraint(condition=Q(amount_minor__gt=0), name="creditpack_amount_positive"),
            models.CheckConstraint(condition=Q(bonus_credits__gte=0), name="creditpack_bonus_not_negative"),
        ]

    def __str__(self) -> str:
        return self.code

    def clean(self) -> None:
        """Refuse an unsupported currency."""
        if self.currency not in settings.BILLING_CURRENCIES:
            raise ValidationError({"currency": f"Supported: {', '.join(settings.BILLING_CURRENCIES)}."})


class Purchase(models.Model):
    """
    A one-off invoice for our product; its id is the idempotency key at Stripe.

    The owner orders it, or automatic top-up does. A paid one that staff made at Stripe is stored, too. A user has at
    most one that is open.
    """

    class Status(models.TextChoices):
        OPEN = "open"
        PAID = "paid"
        VOID = "void"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="purchases")
    customer = models.ForeignKey("payments.Customer", models.PROTECT, related_name="purchases")
    # Chosen by the caller. Empty if staff made it at Stripe.
    idempotency_key = models.CharField(max_length=128, blank=True, default="")
    pack = models.ForeignKey("payments.CreditPack", models.PROTECT, null=True, related_name="purchases")
    top_up = models.ForeignKey("payments.AutoTopUp", models.PROTECT, null=True, related_name="purchases")
    amount_minor = models.BigIntegerField(help_text="The price with tax, in minor units.")
    currency = models.CharField(max_length=3)
    bonus_credits = models.BigIntegerField(default=0, help_text="The pack's bonus when it was ordered.")
    # Empty until Stripe's answer to its creation is stored.
    stripe_invoice_id = models.CharField(max_length=255, blank=True, default="")
    status = models.CharField(max_length=4, choices=Status, default=Status.OPEN)
    failure_code = models.CharField(
        max_length=40, blank=True, default="", help_text="Why an automatic purchase failed."
    )
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        permissions = [("export_purchase", "Can export purchases")]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "idempotency_key"],
                condition=~Q(idempotency_key=""),
                name="purchase_key_once_per_user",
            ),
            models.UniqueConstraint(
                fields=["user"], condition=Q(status="open"), name="purchase_one_open_per_user"
            ),
            models.UniqueConstraint(
                fields=["stripe_invoice_id"],
                condition=~Q(stripe_invoice_id=""),
                name="purchase_invoice_once",
            ),
            models.CheckConstraint(
                condition=Q(status="open", finished_at=None) | (~Q(status="open") & ~Q(finished_at=None)),
                name="purchase_finished_has_time",
            ),
            models.CheckConstraint(condition=Q(amount_minor__gt=0), name="purchase_amount_positive"),
        ]
        indexes = [
            models.Index(fields=["created_at"], condition=Q(status="open"), name="purchase_open"),
            models.Index(
                fields=["finished_at"], condition=Q(top_up__isnull=False), name="purchase_automatic"
            ),
        ]

    def __str__(self) -> str:
        return self.stripe_invoice_id or f"purchase {self.pk}"


class AutoTopUp(models.Model):
    """
    A user's consent to buy a pack automatically whenever few credits are left, with the terms agreed to.

    Terms never change: other terms are another consent, and the earlier one is withdrawn.
    """

    class PausedReason(models.TextChoices):
        CARD_DECLINED = "card-declined"
        AUTHENTICATION_REQUIRED = "authentication-required"
        PAYMENT_METHOD_REQUIRED = "payment-method-required"
        BILLING_REFUSED = "billing-refused"
        NO_CREDITS = "no-credits"
        PACK_CHANGED = "pack-changed"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="auto_top_ups")
    pack = models.ForeignKey("payments.CreditPack", models.PROTECT, related_name="+")
    threshold = models.BigIntegerField(help_text="A pack is bought when fewer credits are available.")
    amount_minor = models.BigIntegerField(help_text="The pack's price that was agreed to.")
    currency = models.CharField(max_length=3)
    bonus_credits = models.BigIntegerField(default=0, help_text="The pack's bonus that was agreed to.")
    monthly_limit_minor = models.BigIntegerField(
        help_text="Automatic purchases in a calendar month (UTC), at most, in minor units."
    )
    consent = models.TextField(help_text="The text that the user has accepted.")
    consented_at = models.DateTimeField()
    withdrawn_at = models.DateTimeField(null=True)
    paused_at = models.DateTimeField(null=True)
    paused_reason = models.CharField(max_length=24, choices=PausedReason, blank=True, default="")
    decline_code = models.CharField(max_length=64, blank=True, default="")
    last_tried_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user"], condition=Q(withdrawn_at=None), name="autotopup_one_per_user"
            ),
            models.CheckConstraint(
                condition=Q(threshold__gt=0, amount_minor__gt=0, monthly_limit_minor__gte=F("amount_minor"))
                & ~Q(consent=""),
                name="autotopup_terms",
            ),
            models.CheckConstraint(
                condition=Q(paused_at=None, paused_reason="") | (~Q(paused_at=None) & ~Q(paused_reason="")),
                name="autotopup_paused_for_a_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"below {self.threshold:,} credits: {self.pack_id}"
