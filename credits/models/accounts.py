"""
Accounts, the entries that explain their balances, and the runs that recompute the balances from the rows.

An account has the running totals of its entries and open holds. Moves of credits lock the account's row.
Entries are append-only and form a chain without gaps: version n + 1 starts at the balance with which version n
ended. A single statement changes a total together with the row that explains the change
(`credits.services.statements`); `credits.services.reconciliation` recomputes the totals from the rows.
"""

from pathlib import Path
from typing import Any, ClassVar

import pgtrigger
from django.conf import settings
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from gateway.common import sql_functions
from gateway.common.fields import SAFE_INTEGER_MAX, staff_reference
from gateway.common.models import APPEND_ONLY, never_emptied


class CreditAccount(models.Model):
    """
    Whole credits of one owner, a user or a sponsor.

    `balance` has no lower limit in the database, because a clawback can make it negative.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="credit_account"
    )
    sponsor = models.OneToOneField(
        "sponsors.Sponsor", models.PROTECT, null=True, related_name="credit_account"
    )
    balance = models.BigIntegerField(default=0, help_text="Credits: the sum of all entries.")
    held = models.BigIntegerField(default=0, help_text="Credits set aside by open holds.")
    open_holds = models.IntegerField(default=0, help_text="How many holds are open.")
    version = models.BigIntegerField(default=0, help_text="How many entries have been posted.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "credits_account"
        permissions = [
            ("adjust_credits", "Can ask for an adjustment"),
            ("decide_adjustment", "Can decide other people's requests for adjustments"),
            ("export_creditaccount", "Can export accounts"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(held__gte=0), name="credits_account_held_not_negative"),
            models.CheckConstraint(
                condition=Q(open_holds__gte=0), name="credits_account_open_holds_not_negative"
            ),
            models.CheckConstraint(condition=Q(version__gte=0), name="credits_account_version_not_negative"),
            models.CheckConstraint(
                condition=Q(user__isnull=False, sponsor__isnull=True)
                | Q(user__isnull=True, sponsor__isnull=False),
                name="credits_account_one_owner",
            ),
        ]

    def __str__(self) -> str:
        return f"account {self.pk}"

    @property
    def person(self) -> Any:
        """
        The user who owns the account.

        Raises:
            ValueError: a sponsor owns the account.
        """
        if self.user is None:
            raise ValueError(f"account {self.pk} is a sponsor's")
        return self.user

    @property
    def available(self) -> int:
        """The credits that a new hold may take without debt; negative for an account in debt."""
        return self.balance - self.held


class EntrySource(models.TextChoices):
    SUBSCRIBED_PAYOUT = "SUBSCRIBED_PAYOUT"
    # Credits bought without a subscription.
    CREDIT_PURCHASE = "CREDIT_PURCHASE"
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
    CREDIT_EXPIRY = "CREDIT_EXPIRY"
    # The first credits of a new profile, which leave its sponsor's account: a pair of entries.
    FIRST_CREDITS = "FIRST_CREDITS"
    # The debt of a deleted account, which the next account of the same profile takes over: a pair of entries.
    DEBT_TRANSFER = "DEBT_TRANSFER"


# Sources that show that a user is more than a free identity: collected money, or a released earning.
PROOFS = ["SUBSCRIBED_PAYOUT", "CREDIT_PURCHASE", "PUSH_ADS", "VIDEO_ADS", "OFFERWALL", "SURVEYS"]
# Sources that reverse them.
DISPROOFS = ["EARNING_REVERSAL", "PAYOUT_CLAWBACK"]
# Money for credits, and money that went back.
PAID = ["SUBSCRIBED_PAYOUT", "CREDIT_PURCHASE", "PAYOUT_CLAWBACK"]
# Sources that are posted far less often than charges and earnings.
RARE_SOURCES = ["SUBSCRIBED_PAYOUT", "CREDIT_PURCHASE", "RELAY_REVERSAL", *DISPROOFS, "STAFF_ADJUSTMENT"]
# Sources that a timeline shows together with their relay call or check-in.
OF_OTHER_LISTS = ["RELAY_TRANSACTION", "CREDITS_BACK", "CHECK_IN"]

# The SQL functions that place and raise holds, and compute debt limits.
FUNCTIONS = sql_functions.register(
    Path(__file__).parents[1],
    {
        "kept_sources": "({})".format(", ".join(f"'{name}'" for name in [*PROOFS, *DISPROOFS])),
        "paid_sources": "({})".format(", ".join(f"'{name}'" for name in PAID)),
    },
)


# With this collation, the index of a key's constraint serves searches by the whole key and by prefix.
KEY_OPTIONS: dict[str, Any] = {"max_length": 255, "db_collation": "C"}


class CreditEntry(models.Model):
    """A change of a balance in whole credits, posted once and never altered."""

    # No index of its own: that of the constraint (account, version) also finds the newest entries of an account.
    account = models.ForeignKey(CreditAccount, models.PROTECT, related_name="entries", db_index=False)
    amount = models.BigIntegerField(help_text="Credits; negative for a charge.")
    source = models.CharField(max_length=32, choices=EntrySource)
    key = models.CharField(**KEY_OPTIONS, help_text="Idempotency key, which names the cause.")
    balance_before = models.BigIntegerField()
    balance_after = models.BigIntegerField()
    account_version = models.BigIntegerField()
    actor = staff_reference("The member of staff who adjusted.")
    reason = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "credits_entry"
        verbose_name_plural = "credit entries"
        permissions = [("export_creditentry", "Can export entries")]
        constraints = [
            models.UniqueConstraint(fields=["key"], name="credits_entry_key"),
            models.UniqueConstraint(
                fields=["account", "account_version"], name="credits_entry_account_version"
            ),
            models.CheckConstraint(condition=~Q(amount=0), name="credits_entry_amount_not_zero"),
            models.CheckConstraint(
                condition=Q(balance_after=F("balance_before") + F("amount")),
                name="credits_entry_after_is_before_plus_amount",
            ),
            models.CheckConstraint(
                condition=Q(account_version__gte=1), name="credits_entry_version_starts_at_1"
            ),
            models.CheckConstraint(
                condition=Q(source__in=EntrySource.values), name="credits_entry_source_known"
            ),
            models.CheckConstraint(
                condition=~Q(source=EntrySource.STAFF_ADJUSTMENT) | ~Q(reason=""),
                name="credits_entry_adjustment_has_reason",
            ),
        ]
        indexes = [
            # Rows are stored in time order, so a month occupies few pages.
            BrinIndex(fields=["created_at"], name="credits_entry_by_time", autosummarize=True),
            # Finds a user's earnings, newest first, without reading relay charges.
            models.Index(
                fields=["account", "-account_version"],
                condition=~Q(source=EntrySource.RELAY_TRANSACTION),
                name="credits_entry_earnings",
            ),
            # Finds the entries that a timeline lists by themselves, without reading charges, cashback and check-ins.
            models.Index(
                fields=["account", "-account_version"],
                condition=~Q(source__in=OF_OTHER_LISTS),
                name="credits_entry_timeline",
            ),
            # Finds out whether a user has kept a payment or earning, without reading other entries.
            models.Index(
                fields=["account", "source"],
                include=["amount"],
                condition=Q(source__in=[*PROOFS, *DISPROOFS]),
                name="credits_entry_proving",
            ),
            # Finds the entries that finance searches for, which are rare among charges and earnings.
            models.Index(
                fields=["source", "-id"],
                condition=Q(source__in=RARE_SOURCES),
                name="credits_entry_finance",
            ),
            models.Index(fields=["actor"], condition=Q(actor__isnull=False), name="credits_entry_actor"),
            models.Index(
                fields=["-id"], condition=Q(source=EntrySource.DEBT_TRANSFER), name="credits_entry_debts"
            ),
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [APPEND_ONLY, never_emptied("the ledger")]

    def __str__(self) -> str:
        return f"entry {self.pk}: {self.amount:+,} credits"


LARGEST_ADJUSTMENT = SAFE_INTEGER_MAX


class ReconciliationRun(models.Model):
    """
    One reconciliation. `finished_at` is empty while it runs, and stays empty if it fails.

    `counts` has the numbers of compared rows and of findings; `findings` has the first findings, each with
    `rule`, `have` (the row's value), `wanted` (the value at Stripe or of the other rows) and `ids`.
    """

    class Kind(models.TextChoices):
        LEDGER = "ledger", "ledger against accounts"
        CAUSES = "causes", "entries and terms against their causes"
        ROOTS = "roots", "entries against signed roots"
        CHAIN = "chain", "chain against captures"
        STRIPE = "stripe", "Stripe against payouts"

    kind = models.CharField(max_length=16, choices=Kind)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    counts = models.JSONField(default=dict)
    findings = models.JSONField(default=list)

    class Meta:
        db_table = "credits_reconciliationrun"
        permissions = [
            ("run_reconciliation", "Can have the ledger and the chain compared"),
            ("run_stripe_reconciliation", "Can have Stripe compared"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(finished_at__isnull=True) | Q(finished_at__gte=F("started_at")),
                name="credits_reconciliationrun_times_in_order",
            )
        ]
        indexes = [models.Index(fields=["kind", "-started_at"], name="credits_reconciliationrun_new")]

    def __str__(self) -> str:
        return f"{self.kind} {self.started_at:%Y-%m-%d %H:%M}"
