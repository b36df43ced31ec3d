"""Ad networks as staff set them up, how they know our users, and the keys that verify them."""

import re
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q

from gateway.common.addresses import is_bounded, normal_network

_WEAK_NEEDS = (
    "The network's signature does not cover user, amount and id. Enabling it needs a path token, "
    "an address list, a cap per event, a daily cap and hours of hold."
)
_NO_ADDRESS = "Enter IP addresses or networks like 203.0.113.0/24."
_NO_LIST = "A list that lets half of the internet in keeps nobody out. Leave it empty to let any address in."
_LONGEST_HOLD = 366 * 24
_TOO_LONG = f"Credits wait {_LONGEST_HOLD} hours at most, which is a year."
_NO_AD_UNIT = "Enter ad units as digits, or whole as ca-app-pub-…/1234567890."
_NO_AD_UNITS = "Google signs for every publisher. Enabling AdMob needs the ad units that are yours."
_AD_UNIT = re.compile(r"(?:ca-app-pub-[0-9]{1,20}/)?([0-9]{5,20})", re.ASCII)
_GUARDED = (
    Q(is_enabled=False)
    | Q(is_weak=False)
    | (
        # A CHECK passes what is unknown, so a missing cap has to be named.
        Q(per_event_cap__isnull=False, daily_cap__isnull=False)
        & ~Q(path_token_hash="")
        & Q(allowed_addresses__len__gt=0, per_event_cap__gt=0, daily_cap__gt=0, hold_hours__gt=0)
    )
)


class AdNetwork(models.Model):
    """
    One network's settings. The adapter of the same slug knows its dialect.

    Two secrets are live, so that one can be replaced while postbacks are under way.
    They are sealed, and opened by their service alone; of the path's token only the
    SHA-256 is kept.
    """

    slug = models.CharField(max_length=40, unique=True)
    is_enabled = models.BooleanField(default=False, help_text="Postbacks of other networks are not found.")
    is_weak = models.BooleanField(
        editable=False, help_text="Its signature leaves out user, amount or id, as its adapter says."
    )
    path_token_hash = models.CharField(max_length=64, blank=True, default="", editable=False)
    current_secret = models.TextField(blank=True, default="", editable=False)
    previous_secret = models.TextField(blank=True, default="", editable=False)
    secret_changed_at = models.DateTimeField(null=True, blank=True, editable=False)
    rate = models.DecimalField(
        max_digits=16,
        decimal_places=8,
        default=Decimal(1),
        help_text="Credits per unit that the network tells.",
    )
    allowed_addresses = ArrayField(
        models.CharField(max_length=49),
        default=list,
        blank=True,
        help_text="IP addresses or networks that may send; empty lets any.",
    )
    allowed_ad_units = ArrayField(
        models.CharField(max_length=60),
        default=list,
        blank=True,
        help_text="AdMob's ad units that reward here; those of other publishers are signed as well.",
    )
    per_event_cap = models.BigIntegerField(
        null=True, blank=True, help_text="Credits of one event at most; a dearer one is stored and refused."
    )
    daily_cap = models.BigIntegerField(
        null=True, blank=True, help_text="Credits per user and UTC day at most; what exceeds it is refused."
    )
    hold_hours = models.PositiveIntegerField(
        default=0, help_text="Hours that credits wait before they can be spent."
    )

    class Meta:
        db_table = "credits_adnetwork"
        ordering = ("slug",)
        constraints = [
            models.CheckConstraint(condition=Q(rate__gt=0), name="credits_adnetwork_rate_positive"),
            models.CheckConstraint(
                condition=(Q(per_event_cap=None) | Q(per_event_cap__gt=0))
                & (Q(daily_cap=None) | Q(daily_cap__gt=0)),
                name="credits_adnetwork_caps_positive",
                violation_error_message="A cap is at least one credit.",
            ),
            models.CheckConstraint(
                condition=_GUARDED,
                name="credits_adnetwork_weak_is_guarded",
                violation_error_message=_WEAK_NEEDS,
            ),
            models.CheckConstraint(
                condition=Q(is_enabled=False) | ~Q(slug="admob") | Q(allowed_ad_units__len__gt=0),
                name="credits_adnetwork_admob_has_ad_units",
                violation_error_message=_NO_AD_UNITS,
            ),
            models.UniqueConstraint(
                fields=["path_token_hash"],
                condition=~Q(path_token_hash=""),
                name="credits_adnetwork_path_token",
            ),
        ]

    def __str__(self) -> str:
        return self.slug

    def clean(self) -> None:
        """
        Say at the form what the database would refuse, and write addresses in their usual form.

        The caller has set `is_weak`.
        """
        try:
            self.allowed_addresses = [normal_network(text.strip()) for text in self.allowed_addresses]
        except ValueError as error:
            raise ValidationError({"allowed_addresses": _NO_ADDRESS}) from error
        if not all(is_bounded(text) for text in self.allowed_addresses):
            raise ValidationError({"allowed_addresses": _NO_LIST})
        found = [_AD_UNIT.fullmatch(text.strip()) for text in self.allowed_ad_units]
        if None in found:
            raise ValidationError({"allowed_ad_units": _NO_AD_UNIT})
        self.allowed_ad_units = list(dict.fromkeys(match[1] for match in found if match))
        if self.hold_hours > _LONGEST_HOLD:
            raise ValidationError({"hold_hours": _TOO_LONG})
        if self.is_enabled and self.is_weak and not self._is_guarded():
            raise ValidationError(_WEAK_NEEDS, code="weak")

    def _is_guarded(self) -> bool:
        limits = (self.per_event_cap, self.daily_cap, self.hold_hours)
        return bool(self.path_token_hash and self.allowed_addresses and all(limits))

    @property
    def sealed_secrets(self) -> list[str]:
        """The secrets that a postback may be signed with, the newest first, as they are stored."""
        return [secret for secret in (self.current_secret, self.previous_secret) if secret]


class NetworkUser(models.Model):
    """The opaque name of a user at one network: it reveals neither the address nor that two networks mean one user."""

    network = models.ForeignKey(AdNetwork, on_delete=models.PROTECT, related_name="+", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    reference = models.CharField(max_length=32)

    class Meta:
        db_table = "credits_networkuser"
        constraints = [
            models.UniqueConstraint(fields=["network", "reference"], name="credits_networkuser_reference"),
            models.UniqueConstraint(fields=["network", "user"], name="credits_networkuser_user"),
        ]

    def __str__(self) -> str:
        return f"{self.network_id}: {self.reference}"


class VerifierKeySet(models.Model):
    """The public keys of a network that signs with rotating ones, as last fetched: PEM by key id."""

    slug = models.CharField(max_length=40, unique=True)
    keys: Any = models.JSONField()
    fetched_at = models.DateTimeField()

    class Meta:
        db_table = "credits_verifierkeyset"

    def __str__(self) -> str:
        return self.slug
