"""Subscriptions, written only from data just read from Stripe."""

from datetime import datetime, timedelta
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Case, Q, When

from gateway.common import clock
from payments.models.payouts import Payout


class Settlement(models.TextChoices):
    """How an invoice was settled, or why it was not."""

    WAITING = "waiting", "waits to be collected"
    ADDRESS_MISSING = "address-missing", "waits for the customer's address, on which tax depends"
    STUCK = "stuck", "could not be finalized by Stripe"
    COLLECTED = "collected", "paid by card"
    BALANCE = "balance", "covered by the customer's balance"
    CREDIT_NOTE = "credit-note", "settled by a credit note"
    OFF_STRIPE = "off-stripe", "paid outside of Stripe"
    CARRIED = "carried", "below the minimum charge: added to the next invoice"
    FREE = "free", "nothing was due"
    VOID = "void", "voided"
    UNCOLLECTIBLE = "uncollectible", "written off"

    @classmethod
    def waiting(cls) -> "set[Settlement]":
        """Return the states of an invoice that is not settled."""
        return {cls.WAITING, cls.ADDRESS_MISSING, cls.STUCK}

    @classmethod
    def without_money(cls) -> "set[Settlement]":
        """Return the ways to settle an invoice without money reaching Stripe, now or later."""
        return {*cls} - cls.waiting() - {cls.COLLECTED}

    @classmethod
    def unpaid(cls) -> "set[Settlement]":
        """Return those of `without_money` after which a card can pay; a balance pays every invoice until used up."""
        return cls.without_money() - {cls.BALANCE}


class SubscriptionQuerySet(models.QuerySet["Subscription"]):
    def live(self) -> Self:
        """Keep subscriptions that have not ended at Stripe."""
        return self.exclude(status__in=Subscription.ENDED)

    def kept_first(self) -> Self:
        """Order live subscriptions so that the one that upsert keeps is first: active ones first, then by age."""
        return self.order_by(Case(When(status=Subscription.Status.ACTIVE, then=0), default=1), "pk")

    def current_or_last(self) -> "Subscription | None":
        """Return a user's live subscription, else the one created last."""
        return self.live().kept_first().first() or self.order_by("-pk").first()


class Subscription(models.Model):
    """
    A subscription to our product. The service creates at most one live subscription per user; staff can add others.

    Ended subscriptions stay as history. One from which our product was removed at Stripe is stored as ended.
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
    # A renewal was not collected. The subscription continues once its open invoice is paid.
    OVERDUE = (Status.PAST_DUE, Status.UNPAID)
    # An open invoice can be collected with the owner's card.
    COLLECTABLE = (Status.INCOMPLETE, *OVERDUE)
    # Stripe finalizes a draft within 72 hours and then collects it, so one that waits longer needs a person.
    WAITS_AT_MOST = timedelta(days=4)
    # The interval of the subscriptions that the service makes.
    MONTHLY = "month"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="subscriptions")
    customer = models.ForeignKey("payments.Customer", models.PROTECT, related_name="subscriptions")
    stripe_subscription_id = models.CharField(max_length=255, unique=True)
    stripe_item_id = models.CharField(max_length=255, db_index=True)
    status = models.CharField(max_length=20, choices=Status)
    amount_minor = models.BigIntegerField(help_text="Amount per interval, in minor units.")
    interval = models.CharField(
        max_length=16,
        default=MONTHLY,
        db_default=MONTHLY,
        help_text="The time that the amount is for: month, year, 3 months.",
    )
    is_invoiced = models.BooleanField(
        default=False, db_default=False, help_text="Stripe sends invoices to be paid, and charges no card."
    )
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

    def is_covered_after(self, paid_until: datetime) -> bool:
        """Whether a balance, and no payment, covers the current period, which begins at `paid_until` or later."""
        is_covered = self.status == self.Status.ACTIVE and self.latest_invoice == Settlement.BALANCE
        return is_covered and self.current_period_start >= paid_until

    def payouts_at(self, now: datetime) -> list[Payout]:
        """Return the payouts of the period that contains `now`: that of the month, then those of changes during it."""
        running = self.payouts.filter(period_start__lte=now, period_end__gt=now)
        return list(running.order_by("period_start", "pk"))

    def stuck_invoice(self, now: datetime) -> Settlement | None:
        """Return the state of an unpaid invoice that Stripe will not collect by itself, though all looks active."""
        if self.status != self.Status.ACTIVE or self.is_resting:
            return None
        if self.latest_invoice in {Settlement.ADDRESS_MISSING, Settlement.STUCK}:
            return Settlement(self.latest_invoice)
        waits_too_long = now - self.current_period_start > self.WAITS_AT_MOST
        if self.latest_invoice == Settlement.WAITING and (self.is_invoiced or waits_too_long):
            return Settlement.WAITING
        return None

    def outlook(self) -> str:
        """Return the next event of the subscription in words, for staff."""
        if self.status in self.ENDED:
            return "has ended"
        if self.status in self.COLLECTABLE:
            return "waits for a payment by the owner"
        return f"{self._next()}{self._terms()}{self._unpaid_month()}"

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

    def _terms(self) -> str:
        """Return in words what staff have set at Stripe, other than a monthly price that a card pays."""
        interval = "" if self.interval == self.MONTHLY else f", by the {self.interval}"
        return f"{interval}{', by invoices that the owner pays' if self.is_invoiced else ''}"

    def _unpaid_month(self) -> str:
        """Return in words how the latest invoice was settled without a payment, so that it paid out no credits."""
        stuck = self.stuck_invoice(clock.now())
        if stuck is not None:
            return f"; the latest invoice is not collected: {stuck.label}"
        if self.status != self.Status.ACTIVE or self.latest_invoice not in Settlement.without_money():
            return ""
        return f"; no credits for the latest invoice: {self.get_latest_invoice_display()}"
