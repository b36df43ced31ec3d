"""Until when a user is subscribed, and with how many credits: all that the lower floors know about it."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q


class Allowance(models.Model):
    """
    The paid period of a user, as last reported; an ended one stays for support to read.

    `resets_at` is `ends_at` while the period runs. Once the provider has begun the next
    period and has not collected for it yet, it is the end of that period.
    """

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="allowance")
    credits = models.BigIntegerField(help_text="Credits paid out for the period.")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField(help_text="End of the paid period.")
    resets_at = models.DateTimeField(help_text="End of the period that the provider is in.")
    renews = models.BooleanField(help_text="The subscription is active or past due, and not cancelling.")

    class Meta:
        db_table = "credits_allowance"
        constraints = [
            models.CheckConstraint(
                condition=Q(credits__gte=0), name="credits_allowance_credits_not_negative"
            ),
            models.CheckConstraint(
                condition=Q(starts_at__lte=F("ends_at"), ends_at__lte=F("resets_at")),
                name="credits_allowance_times_in_order",
            ),
        ]

    def __str__(self) -> str:
        return f"allowance {self.pk}: {self.credits} until {self.ends_at:%Y-%m-%d}"
