"""Limits on the debt that the service lends, and the debts of deleted accounts."""

from typing import ClassVar

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from credits.models.accounts import CreditAccount
from gateway.common.fields import SAFE_INTEGER_MAX
from gateway.common.models import APPEND_ONLY


class UnbackedCeiling(models.Model):
    """
    The ceiling on unbacked credits, which the service gives in a UTC day without a payment or an earning.

    These are new debt and the credits of check-ins, of all users together. The newest row is in force; rows are
    append-only.
    """

    credits = models.BigIntegerField(
        help_text="New debt and check-in credits of all users in a UTC day, at most."
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "credits_unbackedceiling"
        permissions = [("decide_unbackedceiling", "Can decide other people's requests for this ceiling")]
        constraints = [
            models.CheckConstraint(
                condition=Q(credits__gte=0, credits__lte=SAFE_INTEGER_MAX),
                name="credits_unbackedceiling_in_range",
                violation_error_message="The ceiling is at least 0.",
            ),
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [APPEND_ONLY]

    def __str__(self) -> str:
        return "new ceiling" if self.credits is None else f"{self.credits:,} unbacked credits a day"


class UnbackedDay(models.Model):
    """The unbacked credits of a UTC day: new debt, and the credits of check-ins."""

    day = models.DateField(primary_key=True)
    debt = models.BigIntegerField(default=0)
    check_ins = models.BigIntegerField(default=0)

    class Meta:
        db_table = "credits_unbackedday"
        constraints = [
            models.CheckConstraint(
                condition=Q(debt__gte=0, check_ins__gte=0), name="credits_unbackedday_not_negative"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.day}"


class Debtor(models.Model):
    """
    A deleted account that owes credits or may still come to owe some, recognised by a keyed digest of its profile.

    `successor` is the next account of the same profile, which takes over the debt. `credits.services.debts` writes
    and deletes the rows.
    """

    account = models.OneToOneField(CreditAccount, models.PROTECT, primary_key=True, related_name="debtor")
    key_id = models.CharField(max_length=16, help_text="Names the key in DEBT_DIGEST_KEYS.")
    digest = models.CharField(max_length=64, help_text="HMAC-SHA256 of the profile's address.")
    successor = models.ForeignKey(
        CreditAccount,
        models.PROTECT,
        null=True,
        related_name="predecessors",
        help_text="Takes over the debt.",
    )
    erased_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "credits_debtor"
        indexes = [models.Index(fields=["digest"], name="credits_debtor_digest")]

    def __str__(self) -> str:
        return f"debtor {self.pk}"
