"""
The ledger: accounts, the entries that explain their balances, holds, allowances and reconciliation runs.

An account is a running total of its entries and open holds, and the only ledger row that is locked.
Its entries are append-only and form a chain without gaps: version n + 1 starts at the balance where version n
ended. Single statements move a total together with the row that explains the move
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
    """Whole credits of one user. `balance` is not constrained: a clawback or a higher gas price may overshoot."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.PROTECT, related_name="credit_account")
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
        ]

    def __str__(self) -> str:
        return f"account {self.pk}"

    @property
    def available(self) -> int:
        """Credits that a new hold may take; negative for an account in debt."""
        return self.balance - self.held


class EntrySource(models.TextChoices):
    SUBSCRIBED_PAYOUT = "SUBSCRIBED_PAYOUT"
    # Credits bought beside a subscription.
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
    # What a deleted account owes, taken over by the next account of the same profile: a pair of entries.
    DEBT_TRANSFER = "DEBT_TRANSFER"


# Sources that distinguish a user from a free identity: collected money, or a released earning.
PROOFS = ["SUBSCRIBED_PAYOUT", "CREDIT_PURCHASE", "PUSH_ADS", "VIDEO_ADS", "OFFERWALL", "SURVEYS"]
# Sources that reverse these.
DISPROOFS = ["EARNING_REVERSAL", "PAYOUT_CLAWBACK"]
# Sources that are posted far less often than charges and earnings.
RARE_SOURCES = ["SUBSCRIBED_PAYOUT", "CREDIT_PURCHASE", "RELAY_REVERSAL", *DISPROOFS, "STAFF_ADJUSTMENT"]
# Sources that a timeline shows with the relay call or the check-in that they belong to.
OF_OTHER_LISTS = ["RELAY_TRANSACTION", "CREDITS_BACK", "CHECK_IN"]

# Placing and raising holds, debt limits.
FUNCTIONS = sql_functions.register(
    Path(__file__).parent,
    {"kept_sources": "({})".format(", ".join(f"'{name}'" for name in [*PROOFS, *DISPROOFS]))},
)


# A key that can be searched whole or by prefix, both through the index of its constraint.
_KEY: dict[str, Any] = {"max_length": 255, "db_collation": "C"}


class CreditEntry(models.Model):
    """A change of a balance in whole credits, posted once and never altered."""

    # The unique constraint (account, version) also serves "newest entries of an account".
    account = models.ForeignKey(CreditAccount, models.PROTECT, related_name="entries", db_index=False)
    amount = models.BigIntegerField(help_text="Credits; negative for a charge.")
    source = models.CharField(max_length=32, choices=EntrySource)
    key = models.CharField(**_KEY, help_text="Idempotency key, which names the cause.")
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
            # Rows are in time order, so a month is a few pages.
            BrinIndex(fields=["created_at"], name="credits_entry_by_time", autosummarize=True),
            # A user's earnings, newest first, without reading relay charges.
            models.Index(
                fields=["account", "-account_version"],
                condition=~Q(source=EntrySource.RELAY_TRANSACTION),
                name="credits_entry_earnings",
            ),
            # The entries that a timeline lists by themselves, without reading charges, cashback and check-ins.
            models.Index(
                fields=["account", "-account_version"],
                condition=~Q(source__in=OF_OTHER_LISTS),
                name="credits_entry_timeline",
            ),
            # Whether a user has kept a payment or earning, without reading other entries.
            models.Index(
                fields=["account", "source"],
                include=["amount"],
                condition=Q(source__in=[*PROOFS, *DISPROOFS]),
                name="credits_entry_kept",
            ),
            # The entries that finance searches are rare among charges and earnings.
            models.Index(
                fields=["source", "-id"],
                condition=Q(source__in=RARE_SOURCES),
                name="credits_entry_rare",
            ),
            models.Index(fields=["actor"], condition=Q(actor__isnull=False), name="credits_entry_actor"),
            models.Index(
                fields=["-id"], condition=Q(source=EntrySource.DEBT_TRANSFER), name="credits_entry_debts"
            ),
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [APPEND_ONLY, never_emptied("the ledger")]

    def __str__(self) -> str:
        return f"entry {self.pk}: {self.amount:+,} credits"


class ExpiryRule(models.Model):
    """From `valid_from` on, given credits expire `days` days after they were added; without days they never do."""

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
    The date on which the credits that are left of a given lot expire, and when that was announced.

    The lot is that of the `entry` (`credits.lots`). A lot without such a row does not expire.
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


class CreditHold(models.Model):
    """Credits reserved until an entry captures them or they are released."""

    # Only open holds are looked up by account; a partial index below serves that.
    account = models.ForeignKey(CreditAccount, on_delete=models.PROTECT, related_name="holds", db_index=False)
    key = models.CharField(**_KEY, help_text="Idempotency key, which names the cause.")
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

    class Meta:
        db_table = "credits_hold"
        constraints = [
            models.UniqueConstraint(fields=["key"], name="credits_hold_key"),
            models.CheckConstraint(condition=Q(amount__gt=0), name="credits_hold_amount_positive"),
            models.CheckConstraint(
                condition=Q(status=HoldStatus.HELD, captured_amount=None, entry=None, closed_at=None)
                | Q(
                    status=HoldStatus.CAPTURED,
                    # Both conditions: a CHECK accepts unknown, and null > 0 is unknown.
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
        return f"hold {self.pk}: {self.amount} {self.status}"


class Allowance(models.Model):
    """The paid period of a user, as last reported; an ended one is kept for support."""

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


class UnbackedCeiling(models.Model):
    """
    The ceiling on unbacked credits: what the service gives in a UTC day without money or an earning behind it.

    That is new debt and the credits of check-ins, of all users together. The newest row is in force; none is changed.
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
    A deleted account that owes credits or may come to owe some, recognisable by a keyed digest of its profile.

    `successor` is the next account of the same profile, which takes over what is owed. `credits.services.debts` writes
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


LARGEST_ADJUSTMENT = SAFE_INTEGER_MAX


class ReconciliationRun(models.Model):
    """
    One reconciliation. `finished_at` is empty while it runs, and stays empty if it fails.

    `counts` has the numbers of rows compared and of findings; `findings` has the first of them, each with
    `rule`, `have` (the row's value), `wanted` (the value by Stripe or the other rows) and `ids`.
    """

    class Kind(models.TextChoices):
        LEDGER = "ledger", "ledger against accounts"
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
