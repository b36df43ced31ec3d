"""The inbox of postbacks, with everything that a credit was computed from."""

from django.conf import settings
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Q

from credits.models.entries import CreditEntry
from credits.models.networks import AdNetwork


class PostbackKind(models.TextChoices):
    """What it reports."""

    CREDIT = "CREDIT"
    REVERSAL = "REVERSAL"
    PENDING = "PENDING"
    INFO = "INFO"
    TEST = "TEST"


class PostbackState(models.TextChoices):
    """What became of it."""

    RECEIVED = "RECEIVED", "Received: a reversal whose credit has not come"
    PENDING = "PENDING", "Pending: the network has not decided"
    HELD = "HELD", "Held: credited when its time has come"
    AVAILABLE = "AVAILABLE", "Available: credited"
    REVERSED = "REVERSED", "Reversed"
    INFO = "INFO", "Nothing to do"
    REFUSED = "REFUSED", "Refused: see why"


class Refusal(models.TextChoices):
    """Why an event changes nothing, although its network did report it."""

    ABOVE_A_CAP = "ABOVE_A_CAP", "Above a cap"
    ANOTHERS_CREDIT = "ANOTHERS_CREDIT", "It names another user than the credit that it takes back"
    FORFEITED = "FORFEITED", "Staff forfeited it while it was held"


# Rows that no credit was given for, and that keep none from being given: a repeat of them changes nothing either.
# Credits stay, also refused ones, and so do reversals that took something back or wait for their credit.
WORTHLESS = Q(kind__in=["INFO", "TEST", "PENDING"]) | Q(kind="REVERSAL", state__in=["REFUSED", "INFO"])


class Postback(models.Model):
    """
    One event of a network, stored with the entry that it led to, in one transaction.

    Unique by network, external id and kind, so a repeat finds the first one; a reversal
    also by user, so that one that names a stranger leaves room for the right one. A
    credit and its reversal are two rows that name the same `original_id`.
    """

    network = models.ForeignKey(AdNetwork, on_delete=models.PROTECT, related_name="+", db_index=False)
    external_id = models.CharField(max_length=200)
    kind = models.CharField(max_length=10, choices=PostbackKind)
    original_id = models.CharField(max_length=200, help_text="The credit that a reversal takes back.")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    state = models.CharField(max_length=10, choices=PostbackState)
    refused_because = models.CharField(max_length=20, choices=Refusal, blank=True, default="", db_default="")
    amount = models.DecimalField(max_digits=24, decimal_places=12, help_text="In the network's unit.")
    takes_back = models.DecimalField(
        max_digits=24,
        decimal_places=12,
        null=True,
        help_text="Of a reversal, in the network's unit; empty takes the whole credit back.",
    )
    payout_usd = models.DecimalField(max_digits=24, decimal_places=12, null=True)
    rate = models.DecimalField(max_digits=16, decimal_places=8, help_text="Credits per unit, then.")
    badge_bonus = models.DecimalField(max_digits=9, decimal_places=4, default=0)
    modifier_bonus = models.DecimalField(max_digits=9, decimal_places=4, default=0)
    credits = models.BigIntegerField(
        default=0,
        help_text="floor(amount × rate × (1 + badge bonus + modifier bonus)); of a reversal, those taken.",
    )
    entry = models.ForeignKey(
        CreditEntry, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    available_at = models.DateTimeField(null=True, help_text="When held credits are given.")
    occurred_at = models.DateTimeField(null=True, help_text="By the network's clock.")
    received_at = models.DateTimeField()
    is_conflicting = models.BooleanField(
        default=False, help_text="It came again saying something else; the first word counts."
    )
    raw = models.BinaryField(help_text="Query, or body, as it came.")
    headers = models.JSONField(default=dict)
    payload_hash = models.CharField(max_length=64, help_text="SHA-256 of what it says.")
    request_id = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        db_table = "credits_postback"
        permissions = [("decide_earning", "Can release or forfeit a held earning")]
        constraints = [
            models.UniqueConstraint(
                fields=["network", "external_id", "kind"],
                condition=~Q(kind="REVERSAL"),
                name="credits_postback_network_event",
            ),
            models.UniqueConstraint(
                fields=["network", "external_id", "user"],
                condition=Q(kind="REVERSAL"),
                name="credits_postback_reversal_of_user",
            ),
            models.CheckConstraint(
                condition=Q(refused_because="") | Q(state="REFUSED"),
                name="credits_postback_refusal_has_state",
            ),
            models.CheckConstraint(
                condition=Q(takes_back=None) | Q(kind="REVERSAL", takes_back__gt=0),
                name="credits_postback_only_reversals_take_back",
            ),
            models.CheckConstraint(
                condition=Q(state__in=PostbackState.values), name="credits_postback_state_known"
            ),
            models.CheckConstraint(
                condition=Q(kind__in=PostbackKind.values),
                name="credits_postback_kind_known",
            ),
            models.CheckConstraint(condition=Q(credits__gte=0), name="credits_postback_credits_not_negative"),
            models.CheckConstraint(
                condition=~Q(state="HELD") | Q(kind="CREDIT", available_at__isnull=False, entry=None),
                name="credits_postback_held_has_time_and_no_entry",
            ),
            models.CheckConstraint(
                condition=Q(entry=None) | Q(state__in=["AVAILABLE", "REVERSED"], credits__gt=0),
                name="credits_postback_entry_has_credits",
            ),
            models.CheckConstraint(
                condition=Q(kind__in=["INFO", "TEST"]) | Q(user__isnull=False),
                name="credits_postback_has_user",
            ),
        ]
        indexes = [
            # Rows come in the order of time: a day is a few pages.
            BrinIndex(fields=["received_at"], name="credits_postback_by_time", autosummarize=True),
            models.Index(fields=["network", "original_id"], name="credits_postback_original"),
            models.Index(fields=["user", "received_at"], name="credits_postback_user"),
            models.Index(fields=["request_id"], condition=~Q(request_id=""), name="credits_postback_request"),
            models.Index(fields=["received_at"], condition=WORTHLESS, name="credits_postback_worthless"),
            models.Index(fields=["available_at"], condition=Q(state="HELD"), name="credits_postback_due"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.external_id}"
