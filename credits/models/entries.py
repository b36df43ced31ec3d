"""
Why a balance is what it is: one append-only row per change.

Entries of an account form a chain without gaps: version n + 1 starts at the
balance where version n ended. The counter-account of an entry is its source.
"""

from typing import ClassVar

import pgtrigger
from django.conf import settings
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models.functions import Now

from credits.models.accounts import CreditAccount


class EntrySource(models.TextChoices):
    """Where credits come from, or go to."""

    SUBSCRIBED_PAYOUT = "SUBSCRIBED_PAYOUT"
    PUSH_ADS = "PUSH_ADS"
    VIDEO_ADS = "VIDEO_ADS"
    OFFERWALL = "OFFERWALL"
    SURVEYS = "SURVEYS"
    CHECK_IN = "CHECK_IN"
    CREDITS_BACK = "CREDITS_BACK"
    RELAY_TRANSACTION = "RELAY_TRANSACTION"
    RELAY_REVERSAL = "RELAY_REVERSAL"
    EARNING_REVERSAL = "EARNING_REVERSAL"
    PAYOUT_CLAWBACK = "PAYOUT_CLAWBACK"
    STAFF_ADJUSTMENT = "STAFF_ADJUSTMENT"


# What proves that somebody is worth more than a free identity: money collected, or an earning released.
PROOFS = ["SUBSCRIBED_PAYOUT", "PUSH_ADS", "VIDEO_ADS", "OFFERWALL", "SURVEYS"]
# What takes such a proof back.
DISPROOFS = ["EARNING_REVERSAL", "PAYOUT_CLAWBACK"]
# What is posted far less often than charges and earnings.
RARE_SOURCES = [
    "SUBSCRIBED_PAYOUT",
    "RELAY_REVERSAL",
    "EARNING_REVERSAL",
    "PAYOUT_CLAWBACK",
    "STAFF_ADJUSTMENT",
]


class CreditEntry(models.Model):
    """A change of a balance in whole credits, posted once and never altered."""

    # The unique (account, version) serves "newest entries of an account"; another index only costs writes.
    account = models.ForeignKey(
        CreditAccount, on_delete=models.PROTECT, related_name="entries", db_index=False
    )
    amount = models.BigIntegerField(help_text="Credits; negative where the user pays.")
    source = models.CharField(max_length=32, choices=EntrySource)
    key = models.CharField(max_length=255, unique=True, help_text="Names the cause; the same key posts once.")
    balance_before = models.BigIntegerField()
    balance_after = models.BigIntegerField()
    account_version = models.BigIntegerField()
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        help_text="The member of staff who adjusted.",
    )
    reason = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "credits_entry"
        verbose_name_plural = "credit entries"
        permissions = [("export_creditentry", "Can take the list of entries away")]
        constraints = [
            models.UniqueConstraint(
                fields=["account", "account_version"], name="credits_entry_account_version"
            ),
            models.CheckConstraint(condition=~models.Q(amount=0), name="credits_entry_amount_not_zero"),
            models.CheckConstraint(
                condition=models.Q(balance_after=models.F("balance_before") + models.F("amount")),
                name="credits_entry_after_is_before_plus_amount",
            ),
            models.CheckConstraint(
                condition=models.Q(account_version__gte=1), name="credits_entry_version_starts_at_1"
            ),
            models.CheckConstraint(
                condition=models.Q(source__in=EntrySource.values), name="credits_entry_source_known"
            ),
            models.CheckConstraint(
                condition=~models.Q(source=EntrySource.STAFF_ADJUSTMENT) | ~models.Q(reason=""),
                name="credits_entry_adjustment_has_reason",
            ),
        ]
        indexes = [
            # Rows come in the order of time: a month is a few pages.
            BrinIndex(fields=["created_at"], name="credits_entry_by_time", autosummarize=True),
            # What a user has earned, newest first, however many relay charges are between.
            models.Index(
                fields=["account", "-account_version"],
                condition=~models.Q(source=EntrySource.RELAY_TRANSACTION),
                name="credits_entry_earnings",
            ),
            # Whether a user has paid or earned and kept it, however many other entries came since.
            models.Index(
                fields=["account", "source"],
                include=["amount"],
                condition=models.Q(source__in=[*PROOFS, *DISPROOFS]),
                name="credits_entry_proofs",
            ),
            # What finance looks for is rare among charges and earnings.
            models.Index(
                fields=["source", "-id"],
                condition=models.Q(source__in=RARE_SOURCES),
                name="credits_entry_rare_sources",
            ),
            models.Index(
                fields=["actor"], condition=models.Q(actor__isnull=False), name="credits_entry_actor"
            ),
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.Protect(name="append_only", operation=pgtrigger.Update | pgtrigger.Delete),
            # `manage.py flush` would empty the ledger in one TRUNCATE. Databases named test_… are
            # emptied that way between transactional tests, so the name decides.
            pgtrigger.Trigger(
                name="never_emptied",
                level=pgtrigger.Statement,
                when=pgtrigger.Before,
                operation=pgtrigger.Truncate,
                condition=pgtrigger.Condition("left(current_database()::text, 5) <> 'test_'"),
                func="RAISE EXCEPTION 'the ledger is append-only: % cannot be truncated', TG_TABLE_NAME;",
            ),
        ]

    def __str__(self) -> str:
        return f"entry {self.pk}: {self.amount:+d} {self.source}"
