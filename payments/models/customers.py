"""Customers: the link between a user and a customer record at Stripe."""

from django.conf import settings
from django.db import models


class Customer(models.Model):
    """One user, one customer at Stripe, for good."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.PROTECT, related_name="billing_customer")
    stripe_customer_id = models.CharField(max_length=255, unique=True)
    # When the newest stored answer from Stripe about the customer had arrived, by the
    # database's clock. An answer that was asked for before that may be older than the rows.
    heard_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.stripe_customer_id
