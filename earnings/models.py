"""Ad networks, their users' references and verifier keys, and postbacks with all factors of their credits."""

import re
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q

from credits.models import CreditEntry
from gateway.common.http import is_bounded, normal_network

# Digits of an amount in a network's unit: in total, and after the point.
AMOUNT_DIGITS, AMOUNT_PLACES = 36, 12
# The caps of a network for which staff set none, in credits.
DEFAULT_EVENT_CAP, DEFAULT_DAILY_CAP = 25_000, 50_000
_WEAK_NEEDS = (
    "The network's signature does not cover user, amount and id. Enabling it needs a path token, "
    "an address list and hours of hold."
)
_NO_ADDRESS = "Enter IP addresses or networks like 203.0.113.0/24."
_NO_LIST = "A list that contains half of the internet is no protection. Leave it empty to allow any address."
_MAX_HOLD_HOURS = 366 * 24
_TOO_LONG = f"Credits wait {_MAX_HOLD_HOURS} hours at most, which is a year."
_NO_AD_UNIT = "Enter ad units as digits, or whole as ca-app-pub-…/1234567890."
_NO_AD_UNITS = "Google signs for every publisher. Enabling AdMob needs the ad units that are yours."
_NO_OFFERS_URL = "Enter an address that begins with https:// and has {reference} once."
_OFFERS_URL = re.compile(r"https://[^\s{}]+\{reference\}[^\s{}]*")
_AD_UNIT = re.compile(r"(?:ca-app-pub-[0-9]{1,20}/)?([0-9]{5,20})", re.ASCII)
_GUARDED = (
    Q(is_enabled=False)
    | Q(is_weak=False)
    | (~Q(path_token_hash="") & Q(allowed_addresses__len__gt=0, hold_hours__gt=0))
)


class AdNetwork(models.Model):
    """One network's settings. Its slug names the adapter; `services.networks` decrypts its secrets."""

    slug = models.CharField(max_length=40, unique=True)
    is_enabled = models.BooleanField(default=False, help_text="Postbacks of a disabled network get a 404.")
    is_weak = models.BooleanField(
        editable=False, help_text="Whether its signature omits the user, the amount or the id."
    )
    path_token_hash = models.CharField(max_length=64, blank=True, default="", editable=False)
    current_secret = models.TextField(blank=True, default="", editable=False)
    previous_secret = models.TextField(blank=True, default="", editable=False)
    secret_changed_at = models.DateTimeField(null=True, blank=True, editable=False)
    rate = models.DecimalField(
        max_digits=16,
        decimal_places=8,
        default=Decimal(1),
        help_text="Credits per unit of the network's amount.",
    )
    allowed_addresses = ArrayField(
        models.CharField(max_length=49),
        default=list,
        blank=True,
        help_text="IP addresses or networks that may send; empty allows any.",
    )
    allowed_ad_units = ArrayField(
        models.CharField(max_length=60),
        default=list,
        blank=True,
        help_text="For AdMob: our ad units. Google also signs postbacks of other publishers.",
    )
    per_event_cap = models.BigIntegerField(
        default=DEFAULT_EVENT_CAP,
        help_text="Credits of one event at most; a larger one is held until two people release it.",
    )
    daily_cap = models.BigIntegerField(
        default=DEFAULT_DAILY_CAP,
        help_text="Credits per user and UTC day at most; what exceeds it is held until two people release it.",
    )
    hold_hours = models.PositiveIntegerField(
        default=0, help_text="Hours that credits wait before they can be spent."
    )
    offers_url = models.CharField(
        max_length=500,
        blank=True,
        default="",
        db_default="",
        help_text="The network's page of offers for your app, with {reference} where the user's id belongs. "
        "Empty: only apps show its offers.",
    )

    class Meta:
        db_table = "earnings_adnetwork"
        permissions = [("decide_adnetwork", "Can decide other people's requests about ad networks")]
        ordering = ("slug",)
        constraints = [
            models.CheckConstraint(condition=Q(rate__gt=0), name="earnings_adnetwork_rate_positive"),
            models.CheckConstraint(
                condition=Q(per_event_cap__gt=0, daily_cap__gt=0),
                name="earnings_adnetwork_caps_positive",
                violation_error_message="A cap is at least one credit.",
            ),
            models.CheckConstraint(
                condition=_GUARDED,
                name="earnings_adnetwork_weak_is_guarded",
                violation_error_message=_WEAK_NEEDS,
            ),
            models.CheckConstraint(
                condition=Q(is_enabled=False) | ~Q(slug="admob") | Q(allowed_ad_units__len__gt=0),
                name="earnings_adnetwork_admob_has_ad_units",
                violation_error_message=_NO_AD_UNITS,
            ),
            models.UniqueConstraint(
                fields=["path_token_hash"],
                condition=~Q(path_token_hash=""),
                name="earnings_adnetwork_path_token",
            ),
        ]

    def __str__(self) -> str:
        return self.slug

    def clean(self) -> None:
        """
        Let the form report violations of the database constraints, and normalise the addresses.

        The caller has set `is_weak`.
        """
        try:
            self.allowed_addresses = [normal_network(text.strip()) for text in self.allowed_addresses]
        except ValueError as error:
            raise ValidationError({"allowed_addresses": _NO_ADDRESS}) from error
        if not all(is_bounded(text) for text in self.allowed_addresses):
            raise ValidationError({"allowed_addresses": _NO_LIST})
        matches = [_AD_UNIT.fullmatch(text.strip()) for text in self.allowed_ad_units]
        if None in matches:
            raise ValidationError({"allowed_ad_units": _NO_AD_UNIT})
        self.allowed_ad_units = list(dict.fromkeys(match[1] for match in matches if match))
        if self.offers_url and not _OFFERS_URL.fullmatch(self.offers_url):
            raise ValidationError({"offers_url": _NO_OFFERS_URL})
        if self.hold_hours > _MAX_HOLD_HOURS:
            raise ValidationError({"hold_hours": _TOO_LONG})
        if self.is_enabled and self.is_weak and not self._is_guarded():
            raise ValidationError(_WEAK_NEEDS, code="weak")

    def _is_guarded(self) -> bool:
        return bool(self.path_token_hash and self.allowed_addresses and self.hold_hours)

    def offers_of(self, reference: str) -> str | None:
        """Return the address of the network's offers for a user's reference; None if there is no such page."""
        return self.offers_url.replace("{reference}", reference) or None

    @property
    def sealed_secrets(self) -> list[str]:
        """The stored secrets that may sign a postback, newest first."""
        return [secret for secret in (self.current_secret, self.previous_secret) if secret]


class NetworkUser(models.Model):
    """A user's opaque name at one network: it reveals no address, and networks cannot correlate users."""

    network = models.ForeignKey(AdNetwork, on_delete=models.PROTECT, related_name="+", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    reference = models.CharField(max_length=32)

    class Meta:
        db_table = "earnings_networkuser"
        constraints = [
            models.UniqueConstraint(fields=["network", "reference"], name="earnings_networkuser_reference"),
            models.UniqueConstraint(fields=["network", "user"], name="earnings_networkuser_user"),
        ]

    def __str__(self) -> str:
        return f"{self.network_id}: {self.reference}"


class VerifierKeySet(models.Model):
    """The last fetched public keys of a network that rotates its keys: PEM by key id."""

    slug = models.CharField(max_length=40, unique=True)
    keys: Any = models.JSONField()
    fetched_at = models.DateTimeField()

    class Meta:
        db_table = "earnings_verifierkeyset"

    def __str__(self) -> str:
        return self.slug


class PostbackKind(models.TextChoices):
    CREDIT = "CREDIT"
    REVERSAL = "REVERSAL"
    PENDING = "PENDING"
    INFO = "INFO"
    TEST = "TEST"


class PostbackState(models.TextChoices):
    """The state of a postback; `earnings.states` has the transitions."""

    RECEIVED = "RECEIVED", "Received: a reversal whose credit has not arrived"
    PENDING = "PENDING", "Pending: the network has not decided"
    UNASSIGNED = "UNASSIGNED", "Names no user: staff can give it to a person"
    HELD = "HELD", "Held: credited at the end of the hold, or when two people release it"
    AVAILABLE = "AVAILABLE", "Available: credited"
    REVERSED = "REVERSED", "Reversed"
    INFO = "INFO", "Nothing to do"
    REFUSED = "REFUSED", "Refused: see the reason"


class Refusal(models.TextChoices):
    ABOVE_A_CAP = "ABOVE_A_CAP", "Above a cap"
    ANOTHERS_CREDIT = "ANOTHERS_CREDIT", "Its user differs from the user of the credit to reverse"
    FORFEITED = "FORFEITED", "Forfeited by staff while it was held"
    CLOSED = "CLOSED", "Closed by staff without an effect"


class HoldReason(models.TextChoices):
    """Why a credit is held longer than its network's hold time; for all but the last, two people must release it."""

    EVENT_CAP = "EVENT_CAP", "Above the network's cap per event"
    PERSON_CAP = "PERSON_CAP", "Above the network's cap per person and day"
    NETWORK_SHARE = "NETWORK_SHARE", "Above the network's share of the daily ceiling"
    DAILY_CEILING = "DAILY_CEILING", "Above the daily ceiling of all networks"
    REVERSALS = "REVERSALS", "Half of the person's earnings were taken back"


CAPS = (HoldReason.EVENT_CAP, HoldReason.PERSON_CAP, HoldReason.NETWORK_SHARE, HoldReason.DAILY_CEILING)


# Rows that may be deleted: they gave no credits, and a repeat of them would change nothing. Credits are kept, even
# refused ones, and so are reversals that took credits back or wait for their credit.
WORTHLESS = Q(kind__in=[PostbackKind.INFO, PostbackKind.TEST, PostbackKind.PENDING]) | Q(
    kind=PostbackKind.REVERSAL, state__in=[PostbackState.REFUSED, PostbackState.INFO]
)


class Postback(models.Model):
    """
    One event of a network, stored together with its entry in one transaction.

    Rows are unique by network, external id and kind, so a repeat finds the first row. Reversals
    are unique by user as well, so that one with a wrong user does not block the right one. A
    credit and its reversal are two rows with the same `original_id`.
    """

    network = models.ForeignKey(AdNetwork, on_delete=models.PROTECT, related_name="+", db_index=False)
    external_id = models.CharField(max_length=200)
    kind = models.CharField(max_length=10, choices=PostbackKind)
    original_id = models.CharField(max_length=200, help_text="The credit that a reversal takes back.")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+", db_index=False
    )
    state = models.CharField(max_length=10, choices=PostbackState)
    refused_because = models.CharField(max_length=20, choices=Refusal, blank=True, default="", db_default="")
    hold_reason = models.CharField(max_length=20, choices=HoldReason, blank=True, default="", db_default="")
    amount = models.DecimalField(
        max_digits=AMOUNT_DIGITS, decimal_places=AMOUNT_PLACES, help_text="In the network's unit."
    )
    takes_back = models.DecimalField(
        max_digits=AMOUNT_DIGITS,
        decimal_places=AMOUNT_PLACES,
        null=True,
        help_text="For a reversal: the amount to take back, in the network's unit; empty for all of it.",
    )
    payout_usd = models.DecimalField(max_digits=AMOUNT_DIGITS, decimal_places=AMOUNT_PLACES, null=True)
    rate = models.DecimalField(max_digits=16, decimal_places=8, help_text="Credits per unit at that time.")
    badge_bonus = models.DecimalField(max_digits=9, decimal_places=4, default=0)
    modifier_bonus = models.DecimalField(max_digits=9, decimal_places=4, default=0)
    credits = models.BigIntegerField(
        default=0,
        help_text="floor(amount × rate × (1 + badge bonus + modifier bonus)); for a reversal, the credits taken back.",
    )
    entry = models.ForeignKey(CreditEntry, models.PROTECT, null=True, related_name="+", db_index=False)
    available_at = models.DateTimeField(
        null=True, help_text="When held credits are posted; empty beyond a cap, which two people decide."
    )
    decided_at = models.DateTimeField(null=True, help_text="When its state last changed by a decision.")
    occurred_at = models.DateTimeField(null=True, help_text="By the network's clock.")
    received_at = models.DateTimeField()
    is_conflicting = models.BooleanField(
        default=False, help_text="It was repeated with different content; the first content counts."
    )
    conflicted_at = models.DateTimeField(null=True, help_text="When it last came with different content.")
    raw = models.BinaryField(help_text="The query or the body, as received.")
    headers = models.JSONField(default=dict)
    payload_hash = models.CharField(max_length=64, help_text="SHA-256 of the event's content.")
    request_id = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        db_table = "earnings_postback"
        permissions = [
            ("decide_earning", "Can forfeit a held earning, and ask for its early release"),
            ("decide_release", "Can decide other people's requests for early releases"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["network", "external_id", "kind"],
                condition=~Q(kind=PostbackKind.REVERSAL),
                name="earnings_postback_network_event",
            ),
            models.UniqueConstraint(
                fields=["network", "external_id", "user"],
                condition=Q(kind=PostbackKind.REVERSAL),
                name="earnings_postback_reversal_of_user",
            ),
            models.UniqueConstraint(
                fields=["network", "external_id"],
                condition=Q(kind=PostbackKind.REVERSAL, user=None),
                name="earnings_postback_reversal_of_nobody",
            ),
            models.CheckConstraint(
                condition=Q(refused_because="") | Q(state=PostbackState.REFUSED),
                name="earnings_postback_refusal_has_state",
            ),
            models.CheckConstraint(
                condition=Q(takes_back=None) | Q(kind=PostbackKind.REVERSAL, takes_back__gt=0),
                name="earnings_postback_only_reversals_take_back",
            ),
            models.CheckConstraint(
                condition=Q(state__in=PostbackState.values), name="earnings_postback_state_known"
            ),
            models.CheckConstraint(
                condition=Q(kind__in=PostbackKind.values),
                name="earnings_postback_kind_known",
            ),
            models.CheckConstraint(
                condition=Q(credits__gte=0), name="earnings_postback_credits_not_negative"
            ),
            models.CheckConstraint(
                condition=~Q(state=PostbackState.HELD)
                | Q(kind=PostbackKind.CREDIT, entry=None)
                & (Q(available_at__isnull=False) | Q(hold_reason__in=CAPS)),
                name="earnings_postback_held_has_time_or_cap",
            ),
            models.CheckConstraint(
                condition=Q(entry=None)
                | Q(state__in=[PostbackState.AVAILABLE, PostbackState.REVERSED], credits__gt=0),
                name="earnings_postback_entry_has_credits",
            ),
            models.CheckConstraint(
                condition=Q(user__isnull=False)
                | Q(kind__in=[PostbackKind.INFO, PostbackKind.TEST, PostbackKind.PENDING])
                | Q(state__in=[PostbackState.UNASSIGNED, PostbackState.REFUSED]),
                name="earnings_postback_named_or_unassigned",
            ),
        ]
        indexes = [
            # Rows are stored in time order, so a day occupies few pages.
            BrinIndex(fields=["received_at"], name="earnings_postback_by_time", autosummarize=True),
            models.Index(fields=["network", "original_id"], name="earnings_postback_original"),
            models.Index(fields=["user", "received_at"], name="earnings_postback_user"),
            models.Index(
                fields=["request_id"], condition=~Q(request_id=""), name="earnings_postback_request"
            ),
            models.Index(fields=["received_at"], condition=WORTHLESS, name="earnings_postback_worthless"),
            models.Index(
                fields=["available_at"], condition=Q(state=PostbackState.HELD), name="earnings_postback_due"
            ),
            models.Index(
                fields=["received_at"],
                condition=Q(state__in=[PostbackState.RECEIVED, PostbackState.UNASSIGNED]),
                name="earnings_postback_unmatched",
            ),
            models.Index(
                fields=["decided_at"], condition=Q(user__isnull=False), name="earnings_postback_decided"
            ),
            models.Index(
                fields=["conflicted_at"],
                condition=Q(conflicted_at__isnull=False),
                name="earnings_postback_conflict",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display().lower()} {self.external_id}"


class DailyEarnings(models.Model):
    """Credits that earnings took from a UTC day's ceiling, of one network or of all networks (`scope` is empty)."""

    day = models.DateField()
    scope = models.CharField(max_length=40, blank=True)
    credits = models.BigIntegerField()

    class Meta:
        db_table = "earnings_daily"
        constraints = [
            models.UniqueConstraint(fields=["day", "scope"], name="earnings_daily_day_scope"),
            models.CheckConstraint(condition=Q(credits__gte=0), name="earnings_daily_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.scope}"
