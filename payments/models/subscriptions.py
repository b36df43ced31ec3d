"""Subscriptions, as Stripe last reported them."""

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q


class SubscriptionQuerySet(models.QuerySet["Subscription"]):
    """What a subscription can be asked for."""

    def living(self) -> Self:
        """Keep those that Stripe has not ended for good."""
        return self.exclude(status__in=Subscription.ENDED)


class Subscription(models.Model):
    """
    A monthly subscription. Rows are written from a fresh reading of Stripe alone, never from an event's body.

    A user has at most one living subscription; ended ones stay as history.
    """

    class Status(models.TextChoices):
        """Stripe's words."""

        INCOMPLETE = "incomplete"
        INCOMPLETE_EXPIRED = "incomplete_expired"
        TRIALING = "trialing"
        ACTIVE = "active"
        PAST_DUE = "past_due"
        CANCELED = "canceled"
        UNPAID = "unpaid"
        PAUSED = "paused"

    ENDED = (Status.CANCELED, Status.INCOMPLETE_EXPIRED)

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="subscriptions")
    customer = models.ForeignKey("payments.Customer", models.PROTECT, related_name="subscriptions")
    stripe_subscription_id = models.CharField(max_length=255, unique=True)
    stripe_item_id = models.CharField(max_length=255, db_index=True)
    status = models.CharField(max_length=20, choices=Status)
    amount_minor = models.BigIntegerField(help_text="Monthly amount in minor units of the currency.")
    currency = models.CharField(max_length=3)
    current_period_start = models.DateTimeField()
    current_period_end = models.DateTimeField()
    cancels_at_period_end = models.BooleanField(default=False)
    ended_at = models.DateTimeField(null=True)
    synced_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)

    objects = SubscriptionQuerySet.as_manager()

    class Meta:
        permissions = [("cancel_subscription", "Can cancel a subscription")]
        constraints = [
            models.UniqueConstraint(
                fields=["user"],
                condition=~Q(status__in=["canceled", "incomplete_expired"]),
                name="subscription_one_living_per_user",
            ),
            models.CheckConstraint(condition=Q(amount_minor__gt=0), name="subscription_amount_positive"),
        ]

    def __str__(self) -> str:
        return self.stripe_subscription_id

    def renews(self) -> bool:
        """Whether Stripe will try to collect another period."""
        return self.status in {self.Status.ACTIVE, self.Status.PAST_DUE} and not self.cancels_at_period_end
