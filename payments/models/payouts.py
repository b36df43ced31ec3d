"""Payouts: collected months that became credits."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q


class Payout(models.Model):
    """One paid invoice of a subscription period, paid out once. Amounts in minor units, credits as posted."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="payouts")
    subscription = models.ForeignKey("payments.Subscription", models.PROTECT, related_name="payouts")
    stripe_invoice_id = models.CharField(max_length=255, unique=True)
    # Kept so that a refund or dispute, which names the payment alone, finds its invoice.
    stripe_payment_intent_id = models.CharField(max_length=255, blank=True, default="", db_index=True)
    amount_minor = models.BigIntegerField(help_text="Money collected for the period, in minor units.")
    currency = models.CharField(max_length=3)
    period_start = models.DateTimeField()
    period_end = models.DateTimeField()
    rate = models.ForeignKey("payments.PayoutRate", models.PROTECT, related_name="payouts")
    credits = models.BigIntegerField()
    entry = models.OneToOneField("credits.CreditEntry", models.PROTECT, related_name="payout")
    created_at = models.DateTimeField()

    class Meta:
        permissions = [("export_payout", "Can take the list of payouts away")]
        constraints = [
            models.CheckConstraint(condition=Q(amount_minor__gt=0, credits__gt=0), name="payout_positive"),
            models.CheckConstraint(
                condition=Q(period_start__lt=F("period_end")), name="payout_period_in_order"
            ),
        ]

    def __str__(self) -> str:
        return self.stripe_invoice_id

    def credits_taken_back(self) -> int:
        """Return the credits that its clawbacks have taken, less what they gave again; one statement."""
        taken: int | None = self.clawbacks.aggregate(credits=models.Sum("credits"))["credits"]
        return taken or 0

    def is_taken_back(self) -> bool:
        """Whether clawbacks have taken every credit of it; one statement."""
        return self.credits_taken_back() >= self.credits
