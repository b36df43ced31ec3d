"""
How many credits and how much experience a user has: one row per user, and the only ledger row that is ever locked.

The row is a running total of the entries and the open holds. Single statements
move it together with the row that explains the move (`credits.services.statements`);
`credits.services.reconcile` recomputes it from them.
"""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class CreditAccount(models.Model):
    """
    Whole credits of one user.

    There is no constraint on `balance`: a clawback, or gas dearer than expected,
    may overshoot. The debt limit is enforced when credits are held.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="credit_account"
    )
    balance = models.BigIntegerField(default=0, help_text="Credits: the sum of all entries.")
    held = models.BigIntegerField(default=0, help_text="Credits set aside by open holds.")
    version = models.BigIntegerField(default=0, help_text="How many entries have been posted.")
    permanent_experience = models.BigIntegerField(
        default=0, db_default=0, help_text="The sum of the permanent track."
    )
    subscriber_experience = models.BigIntegerField(
        default=0, db_default=0, help_text="The sum of the subscriber track."
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "credits_account"
        constraints = [
            models.CheckConstraint(condition=models.Q(held__gte=0), name="credits_account_held_not_negative"),
            models.CheckConstraint(
                condition=models.Q(version__gte=0), name="credits_account_version_not_negative"
            ),
            models.CheckConstraint(
                condition=models.Q(permanent_experience__gte=0, subscriber_experience__gte=0),
                name="credits_account_experience_not_negative",
            ),
        ]

    def __str__(self) -> str:
        return f"account {self.pk}"

    @property
    def available(self) -> int:
        """Credits that a new hold may take; negative for an account in debt."""
        return self.balance - self.held
