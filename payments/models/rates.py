"""Rates: the credits that collected money pays out."""

from datetime import datetime
from typing import ClassVar

import pgtrigger
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q

from gateway.common import clock
from gateway.common.models import APPEND_ONLY


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
        triggers: ClassVar[list[pgtrigger.Trigger]] = [APPEND_ONLY]

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
        if self.valid_from is None or self.valid_from > clock.now():
            return
        if PayoutRate.objects.in_force(currency=self.currency, at=self.valid_from) is not None:
            raise ValidationError(
                {"valid_from": "Another rate was in force then. Choose a time in the future."}
            )
