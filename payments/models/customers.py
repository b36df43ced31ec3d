"""Customers at Stripe, written only from data just read from Stripe."""

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q


class CustomerQuerySet(models.QuerySet["Customer"]):
    def current(self) -> Self:
        """Keep customers that are not deleted at Stripe."""
        return self.filter(deleted_at__isnull=True)


class Customer(models.Model):
    """A user's customer at Stripe. A user has at most one that is not deleted there; deleted ones stay as history."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="billing_customers")
    stripe_customer_id = models.CharField(max_length=255, unique=True)
    # When the newest stored response about the customer arrived from Stripe, by the database's
    # clock. A response to an earlier request may be older than the rows.
    last_synced_at = models.DateTimeField(null=True)
    # When the service learned that the customer is deleted at Stripe, which is permanent.
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
