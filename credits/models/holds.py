"""Holds, expiring lots, and the allowance of the paid period."""

from typing import ClassVar

import pgtrigger
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from credits.models.accounts import KEY_OPTIONS, CreditAccount, CreditEntry


class ExpiryRule(models.Model):
    """From `valid_from` on, given credits expire `days` days after they were added; without `days`, they never do."""

    days = models.PositiveIntegerField(
        null=True, blank=True, help_text="At least 30. Empty: given credits do not expire."
    )
    valid_from = models.DateTimeField(unique=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        permissions = [
            ("decide_expiryrule", "Can decide other people's requests about the expiry of credits")
        ]
        constraints = [
            models.CheckConstraint(condition=Q(days=None) | Q(days__gte=30), name="credits_expiryrule_days")
        ]

    def __str__(self) -> str:
        after = "never" if self.days is None else f"after {self.days} days"
        return f"given credits expire {after}, from {self.valid_from:%Y-%m-%d}"


class ExpiringLot(models.Model):
    """
    When the remaining credits of a given lot expire, and when that was announced.

    The lot is that of `entry` (`credits.lots`). A lot without such a row does not expire.
    """

    entry = models.OneToOneField(CreditEntry, models.PROTECT, related_name="expiry")
    credits = models.BigIntegerField(help_text="Credits that were left when it was announced.")
    expires_at = models.DateTimeField(db_index=True)
    announced_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"{self.credits:,} credits expire on {self.expires_at:%Y-%m-%d}"


class HoldStatus(models.TextChoices):
    HELD = "HELD"
    CAPTURED = "CAPTURED"
    RELEASED = "RELEASED"


# What a hold takes of the credits that its account has paid for.
_OF_PAID = (
    "(CASE WHEN NOT {row}.paid_only THEN 0 WHEN {row}.status = 'HELD' THEN {row}.amount"
    " ELSE coalesce({row}.captured_amount, 0) END)"
)
_COUNT = """
INSERT INTO credits_paidspending (account_id, credits) VALUES (OLD.account_id, greatest(0, {change}))
ON CONFLICT (account_id) DO UPDATE SET credits = credits_paidspending.credits + {change};
RETURN NULL;
"""
# After the statement has locked the account, so that accounts come first in the order of locks.
_COUNTERS = [
    pgtrigger.Trigger(
        name="count_paid_only",
        when=pgtrigger.After,
        operation=pgtrigger.Update,
        condition=pgtrigger.Q(old__paid_only=True) | pgtrigger.Q(new__paid_only=True),
        func=_COUNT.format(change=f"{_OF_PAID.format(row='NEW')} - {_OF_PAID.format(row='OLD')}"),
    ),
    pgtrigger.Trigger(
        name="uncount_paid_only",
        when=pgtrigger.After,
        operation=pgtrigger.Delete,
        condition=pgtrigger.Q(old__paid_only=True),
        func=_COUNT.format(change=f"-{_OF_PAID.format(row='OLD')}"),
    ),
]


class CreditHold(models.Model):
    """Credits reserved until an entry captures them or they are released."""

    # No index of its own: only open holds are looked up by account, through a partial index below.
    account = models.ForeignKey(CreditAccount, on_delete=models.PROTECT, related_name="holds", db_index=False)
    key = models.CharField(**KEY_OPTIONS, help_text="Idempotency key, which names the cause.")
    amount = models.BigIntegerField(help_text="Credits set aside.")
    status = models.CharField(max_length=16, choices=HoldStatus, default=HoldStatus.HELD)
    captured_amount = models.BigIntegerField(null=True, help_text="Credits charged; may exceed the amount.")
    entry = models.OneToOneField(CreditEntry, null=True, on_delete=models.PROTECT, related_name="hold")
    created_at = models.DateTimeField(db_default=Now())
    closed_at = models.DateTimeField(null=True)
    reopenings = models.PositiveSmallIntegerField(
        db_default=0, help_text="How often the closed hold was reopened."
    )
    debt = models.BigIntegerField(
        db_default=0, help_text="How much of the amount was new debt when it was set aside."
    )
    debt_day = models.DateField(null=True, help_text="The UTC day that the new debt counts for.")
    paid_only = models.BooleanField(
        db_default=False, help_text="Whether the credits must have been paid for, not given."
    )

    class Meta:
        db_table = "credits_hold"
        triggers: ClassVar[list[pgtrigger.Trigger]] = _COUNTERS
        constraints = [
            models.UniqueConstraint(fields=["key"], name="credits_hold_key"),
            # A user's hold is 0 if a sponsor pays the whole call.
            models.CheckConstraint(condition=Q(amount__gte=0), name="credits_hold_amount_not_negative"),
            models.CheckConstraint(
                condition=Q(status=HoldStatus.HELD, captured_amount=None, entry=None, closed_at=None)
                | Q(
                    status=HoldStatus.CAPTURED,
                    # Needed besides `> 0`: null > 0 is unknown, and a CHECK accepts unknown.
                    captured_amount__isnull=False,
                    captured_amount__gt=0,
                    entry__isnull=False,
                    closed_at__isnull=False,
                )
                | Q(status=HoldStatus.RELEASED, captured_amount=None, entry=None, closed_at__isnull=False),
                name="credits_hold_status_fits_columns",
            ),
        ]
        indexes = [
            models.Index(fields=["account"], condition=Q(status=HoldStatus.HELD), name="credits_hold_open"),
            models.Index(fields=["debt_day"], condition=Q(debt__gt=0), name="credits_hold_debt_of_day"),
        ]

    def __str__(self) -> str:
        return f"hold {self.pk}: {self.amount:,} credits, {self.get_status_display().lower()}"


class PaidSpending(models.Model):
    """
    The credits of an account that its `paid_only` holds have taken: what is held, and what was charged.

    Triggers of the holds count them. `credits_place_holds` keeps the total within what the account has paid for.
    """

    account = models.OneToOneField(
        CreditAccount, models.PROTECT, primary_key=True, related_name="paid_spending"
    )
    credits = models.BigIntegerField()

    class Meta:
        db_table = "credits_paidspending"
        constraints = [
            models.CheckConstraint(condition=Q(credits__gte=0), name="credits_paidspending_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.credits:,} paid credits spent"


class HomeCredits(models.Model):
    """
    The first credits of an account, which are spent at home and on the named chains only, until they expire.

    `spent` has all charges since, except those of `paid_only` holds, and what has expired: the account spends first
    credits before all others. A reorganisation that undoes the profile deletes the row.
    """

    account = models.OneToOneField(
        CreditAccount, models.PROTECT, primary_key=True, related_name="home_credits"
    )
    credits = models.BigIntegerField()
    spent = models.BigIntegerField(db_default=0, help_text="May exceed the first credits.")
    chain_ids = ArrayField(models.BigIntegerField(), default=list)
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "credits_homecredits"
        verbose_name_plural = "home credits"
        constraints = [
            models.CheckConstraint(condition=Q(credits__gte=1), name="credits_homecredits_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.credits:,} home credits"

    @property
    def left(self) -> int:
        """The first credits that are left."""
        return max(0, self.credits - self.spent)


class Allowance(models.Model):
    """A user's latest paid period; it is kept for support after it has ended."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="allowance")
    credits = models.BigIntegerField(help_text="Credits paid out for the period.")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField(help_text="End of the paid period.")
    resets_at = models.DateTimeField(help_text="End of the provider's current period.")
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
