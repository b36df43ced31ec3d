"""
The policies under which sponsors pay for others' relay calls, their voucher signers and verifiers, and their usage.

The row of a sponsor's credit account is the lock for the usage of all its policies: `sponsors/functions.sql` locks it
before it reads or changes a `Usage`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pgtrigger
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q, Value
from django.db.models.functions import Now

from gateway.chain.config import chains, home
from gateway.common import sql_functions
from gateway.common.fields import AddressField, HashField, Uint256Field, checksum
from gateway.common.models import APPEND_ONLY
from gateway.common.public_http import AddressRefused, Exceptions, require_usable
from sponsors.models.members import Sponsor

# Stands for the profile's own functions in a target. `sponsors.rules.calls`, a layer above, has the same constant.
PROFILE = "profile"

# The SQL functions that hold a call's cost on its sponsor's account and count usage, and correct both when it ends.
FUNCTIONS = sql_functions.register(Path(__file__).parents[1])


class Policy(models.Model):
    """A rule set of a sponsor. Its newest version applies; of several policies, the first that fits a call pays."""

    sponsor = models.ForeignKey(Sponsor, models.PROTECT, related_name="policies")
    name = models.SlugField(max_length=40, help_text="Refusals and exports show this name.")
    position = models.PositiveSmallIntegerField(
        default=0, help_text="Policies with lower positions are tried first."
    )
    is_enabled = models.BooleanField(db_default=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "policies"
        constraints = [models.UniqueConstraint(fields=["sponsor", "name"], name="sponsors_policy_name")]

    def __str__(self) -> str:
        # Forms also show rows that have no sponsor yet.
        return f"{self.sponsor}/{self.name}" if self.sponsor_id else self.name


class ProfileRule(models.TextChoices):
    """Whose calls a policy pays for."""

    ALL = "all", "Every profile"
    LISTED = "listed", "Listed profiles"
    NEW = "new", "Profiles that signed in here first after a date"
    VOUCHED = "vouched", "Profiles with a voucher of the sponsor"
    HOLDING = "holding", "Profiles that hold a token"
    FOLLOWED = "followed", "Profiles that a given profile follows"
    FOLLOWER = "follower", "Profiles that follow a given profile"
    VERIFIED = "verified", "Profiles for whose call the sponsor's verifier answers yes"


FOLLOWS = (ProfileRule.FOLLOWED, ProfileRule.FOLLOWER)


class Purpose(models.TextChoices):
    """What a policy pays for."""

    CALLS = "calls", "Calls of profiles"
    PROFILES = "profiles", "New profiles that the sponsor's server requests"
    WELCOME = "welcome", "The default sponsor: new profiles that other sponsors request and do not pay for"


OF_PROFILES = (Purpose.PROFILES, Purpose.WELCOME)


DAY_SECONDS = 86_400
# First credits always expire.
MOST_FIRST_DAYS = 365
# Who a new profile is, the chain and the service do not know yet.
OF_NEW_PROFILES = (ProfileRule.ALL, ProfileRule.VOUCHED, ProfileRule.VERIFIED)


def _limit(text: str) -> "models.BigIntegerField[int | None, int | None]":
    return models.BigIntegerField(null=True, blank=True, validators=[MinValueValidator(1)], help_text=text)


class PolicyVersion(models.Model):
    """
    The terms of a policy. A version is never edited: a change of terms is a new version with the next number.

    Limits are in whole credits of the sponsor's part, or in calls; an empty field sets no limit.
    """

    policy = models.ForeignKey(Policy, models.PROTECT, related_name="versions", db_index=False)
    number = models.PositiveIntegerField()
    purpose = models.CharField(
        "pays for", max_length=8, choices=Purpose, default=Purpose.CALLS, db_default=Purpose.CALLS
    )
    chain_id = models.BigIntegerField(
        "chain",
        null=True,
        blank=True,
        help_text="The id of the chain whose calls it pays for; empty for the home chain. Targets, tokens and followed "
        "profiles are contracts of this chain.",
    )
    starts_at = models.DateTimeField(null=True, blank=True)
    ends_at = models.DateTimeField(null=True, blank=True)
    # [{"contract": address or "profile", "functions": ["0x12345678"]}]; no functions: all; no targets: every call.
    targets = models.JSONField(
        default=list,
        blank=True,
        help_text=(
            'What calls may reach, such as [{"contract": "0x…", "functions": ["0xa9059cbb"]}]. '
            "Without functions, calls may reach the whole contract. An empty list allows every call."
        ),
    )
    profiles = models.CharField(max_length=8, choices=ProfileRule, default=ProfileRule.ALL)
    listed = ArrayField(AddressField(), default=list, blank=True, help_text="The listed profiles.")
    new_since = models.DateTimeField(
        null=True, blank=True, help_text="For new profiles: accounts opened at this time or later."
    )
    counterpart = AddressField(
        null=True, blank=True, help_text="The token that profiles hold, or the other profile of a follow."
    )
    least_balance = Uint256Field(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="For profiles that hold a token: the lowest balance, in the token's smallest unit.",
    )
    gas_price_ceiling_wei = Uint256Field(
        null=True, blank=True, help_text="Maximum gas price of a call, in wei."
    )
    share_percent = models.PositiveSmallIntegerField(
        default=100,
        validators=[MinValueValidator(1), MaxValueValidator(100)],
        help_text="The sponsor's part of each call's cost; the user pays the rest.",
    )
    call_credits = models.BigIntegerField(
        validators=[MinValueValidator(1)], help_text="Maximum credits for one call."
    )
    user_day_credits = _limit("Maximum credits for one user in a UTC day.")
    user_credits = _limit("Maximum credits for one user in total.")
    user_calls = _limit("Maximum calls of one user in total.")
    window_seconds = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(60)],
        help_text="Length of a window in seconds, at least 60.",
    )
    window_credits = _limit("Maximum credits in each window.")
    window_calls = _limit("Maximum calls or new profiles in each window.")
    campaign_credits = _limit("Maximum credits in total.")
    campaign_calls = _limit("Maximum calls or new profiles in total.")
    origin_calls = _limit(
        "For new profiles: the maximum for one origin in a UTC day. For those of other sponsors, each of these is one."
    )
    first_credits = _limit("For new profiles: credits of the sponsor that each gets when it exists.")
    first_days = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_FIRST_DAYS)],
        help_text="For first credits: after how many days they expire.",
    )
    first_chain_ids = ArrayField(
        models.BigIntegerField(),
        default=list,
        blank=True,
        db_default=Value([], output_field=ArrayField(models.BigIntegerField())),
        help_text="For first credits: the ids of chains besides home on which they may be spent.",
    )
    # The owner who wrote the terms within the sponsor's budget. Null for terms that staff have approved.
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, editable=False, related_name="+", db_index=False
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        permissions = [
            ("decide_policyversion", "Can decide other people's requests for versions of policies")
        ]
        constraints = [
            models.UniqueConstraint(fields=["policy", "number"], name="sponsors_policyversion_number"),
            models.CheckConstraint(
                condition=Q(profiles=ProfileRule.NEW, new_since__isnull=False)
                | (~Q(profiles=ProfileRule.NEW) & Q(new_since__isnull=True)),
                name="sponsors_policyversion_since",
            ),
            models.CheckConstraint(
                condition=Q(profiles=ProfileRule.HOLDING, counterpart__isnull=False, least_balance__gte=1)
                | Q(profiles__in=FOLLOWS, counterpart__isnull=False, least_balance__isnull=True)
                | (
                    ~Q(profiles__in=[ProfileRule.HOLDING, *FOLLOWS])
                    & Q(counterpart__isnull=True, least_balance__isnull=True)
                ),
                name="sponsors_policyversion_counterpart",
            ),
            models.CheckConstraint(
                condition=Q(share_percent__gte=1, share_percent__lte=100), name="sponsors_policyversion_share"
            ),
            models.CheckConstraint(
                condition=Q(
                    window_credits__isnull=True, window_calls__isnull=True, window_seconds__isnull=True
                )
                | Q(window_credits__isnull=False, window_seconds__gte=60)
                | Q(window_calls__isnull=False, window_seconds__gte=60),
                name="sponsors_policyversion_window_whole",
            ),
            models.CheckConstraint(
                condition=Q(
                    call_credits__gte=1,
                    user_day_credits__gte=1,
                    user_credits__gte=1,
                    user_calls__gte=1,
                    window_credits__gte=1,
                    window_calls__gte=1,
                    campaign_credits__gte=1,
                    campaign_calls__gte=1,
                ),
                name="sponsors_policyversion_limits_positive",
            ),
            models.CheckConstraint(
                condition=~Q(purpose__in=OF_PROFILES)
                | Q(profiles__in=OF_NEW_PROFILES, share_percent=100, targets=[]),
                name="sponsors_policyversion_purpose",
            ),
            models.CheckConstraint(
                condition=Q(origin_calls__isnull=True) | Q(purpose__in=OF_PROFILES, origin_calls__gte=1),
                name="sponsors_policyversion_origin",
            ),
            # Whoever opens a sponsor can ask for them, so what they cost is bounded each day.
            models.CheckConstraint(
                condition=~Q(purpose=Purpose.WELCOME)
                | Q(
                    window_seconds__isnull=False,
                    window_seconds=DAY_SECONDS,
                    window_calls__isnull=False,
                    window_credits__isnull=False,
                    origin_calls__isnull=False,
                ),
                name="sponsors_policyversion_welcome",
            ),
            models.CheckConstraint(
                condition=Q(first_credits__isnull=True, first_days__isnull=True, first_chain_ids=[])
                | Q(
                    purpose__in=OF_PROFILES,
                    first_credits__isnull=False,
                    first_credits__gte=1,
                    first_days__isnull=False,
                    first_days__gte=1,
                    first_days__lte=MOST_FIRST_DAYS,
                ),
                name="sponsors_policyversion_first",
            ),
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [APPEND_ONLY]

    def __str__(self) -> str:
        return f"{self.policy}, version {self.number}" if self.policy_id else "terms"

    def clean(self) -> None:
        """Refuse terms that contradict each other; normalise the targets' addresses and selectors."""
        if self.chain_id is not None and self.chain_id not in {chain.id for chain in chains()}:
            ids = ", ".join(str(chain.id) for chain in chains())
            raise ValidationError({"chain_id": f"The service has the chains {ids}."})
        if (self.profiles == ProfileRule.NEW) != (self.new_since is not None):
            raise ValidationError({"new_since": "Give a time for new profiles, and only for them."})
        # Forms set an empty string.
        self.counterpart, self.least_balance = self.counterpart or None, self.least_balance or None
        if (self.profiles in {ProfileRule.HOLDING, *FOLLOWS}) != (self.counterpart is not None):
            raise ValidationError(
                {"counterpart": "Give a token or a profile for these rules, and only for them."}
            )
        if (self.profiles == ProfileRule.HOLDING) != (self.least_balance is not None):
            raise ValidationError({"least_balance": "Give a balance for a token, and only for one."})
        limits_window = self.window_credits is not None or self.window_calls is not None
        if limits_window != (self.window_seconds is not None):
            raise ValidationError({"window_seconds": "A window has both a length and a limit."})
        if self.purpose in OF_PROFILES:
            self._clean_for_profiles()
        elif self.origin_calls is not None:
            raise ValidationError({"origin_calls": "Only a policy for new profiles counts origins."})
        self._clean_first_credits()
        try:
            self.targets = [_target(**each) for each in self.targets or ()]
        except (TypeError, ValueError) as error:
            example = '[{"contract": "0x… or profile", "functions": ["0x12345678"]}]'
            raise ValidationError({"targets": f"Write the targets as {example}."}) from error

    def _clean_for_profiles(self) -> None:
        if self.profiles not in OF_NEW_PROFILES:
            detail = "A new profile needs a voucher, the verifier's answer, or nothing."
            raise ValidationError({"profiles": detail})
        if self.share_percent != 100:
            raise ValidationError({"share_percent": "A new profile has no credits; pay the whole cost."})
        if self.targets:
            raise ValidationError({"targets": "A policy for new profiles has no targets."})

        is_bounded = self.window_seconds == DAY_SECONDS and None not in {
            self.window_calls,
            self.window_credits,
        }
        if self.purpose == Purpose.WELCOME and not (is_bounded and self.origin_calls):
            detail = (
                f"Give a window of {DAY_SECONDS} seconds, its calls and credits, and the calls of an origin."
            )
            raise ValidationError({"purpose": detail})

    def _clean_first_credits(self) -> None:
        if (self.first_credits is None) != (self.first_days is None):
            raise ValidationError({"first_days": "First credits have both a number and days."})
        further = {chain.id for chain in chains()} - {home().id}
        if self.first_credits is None and self.first_chain_ids:
            raise ValidationError({"first_chain_ids": "Only first credits have further chains."})
        if not further.issuperset(self.first_chain_ids or ()):
            ids = ", ".join(map(str, sorted(further))) or "none"
            raise ValidationError({"first_chain_ids": f"The service has these chains besides home: {ids}."})
        if self.first_credits is None:
            return
        if self.purpose not in OF_PROFILES or self.chain_id not in {None, home().id}:
            detail = "Only a policy for new profiles on the home chain gives first credits."
            raise ValidationError({"first_credits": detail})


def _target(contract: str, functions: Sequence[str] = ()) -> dict[str, Any]:
    """Return a target with a checksummed address and lower-case selectors."""
    selectors = [bytes.fromhex(one.removeprefix("0x")) for one in functions]
    if any(len(one) not in {0, 4} for one in selectors):
        raise ValueError("a selector has 4 bytes; none is a transfer of LYX")
    address = contract if contract == PROFILE else checksum(contract)
    return {"contract": address, "functions": ["0x" + one.hex() for one in selectors]}


class UsageScope(models.TextChoices):
    """What a `Usage` counts: a user's UTC day, a user in all, a window, or the whole campaign."""

    USER_DAY = "user-day"
    USER = "user"
    WINDOW = "window"
    CAMPAIGN = "campaign"


class Usage(models.Model):
    """Credits and calls that count towards a limit of a policy: captured, or held by calls in flight."""

    policy = models.ForeignKey(Policy, models.PROTECT, related_name="usage", db_index=False)
    scope = models.CharField(max_length=8, choices=UsageScope)
    # No nullable columns, because a unique index treats nulls as different.
    user_number = models.BigIntegerField(default=0, help_text="The user's id; 0 counts all users.")
    begins = models.DateTimeField(help_text="When the day or window begins; 1970-01-01 counts all time.")
    credits = models.BigIntegerField(default=0)
    calls = models.BigIntegerField(default=0)

    class Meta:
        verbose_name_plural = "usage"
        constraints = [
            models.UniqueConstraint(
                fields=["policy", "scope", "user_number", "begins"], name="sponsors_usage_once"
            ),
            models.CheckConstraint(
                condition=Q(credits__gte=0, calls__gte=0), name="sponsors_usage_not_negative"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.scope} of policy {self.policy_id}"


class RefusalCount(models.Model):
    """How many requests for the sponsor's credits a rule refused on a UTC day, including preparations."""

    sponsor = models.ForeignKey(Sponsor, models.PROTECT, related_name="refusals", db_index=False)
    day = models.DateField()
    rule = models.CharField(max_length=64, help_text="The code of the problem.")
    requests = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["sponsor", "day", "rule"], name="sponsors_refusalcount_once")
        ]

    def __str__(self) -> str:
        return f"{self.rule} of sponsor {self.sponsor_id}"


class RefusedRequest(models.Model):
    """
    A call for which the sponsor did not pay, as asked for last; only the newest of each sponsor are kept.

    Nothing of it is on the chain, so its sponsor sees what it calls and why it was refused, but not the profile.
    """

    sponsor = models.ForeignKey(Sponsor, models.PROTECT, related_name="refused_requests", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False)
    # A preparation and a repeat of the same call have the same key.
    key = models.CharField(max_length=64)
    chain_id = models.BigIntegerField(
        "chain", null=True, help_text="Empty for requests before there were several."
    )
    rule = models.CharField(max_length=64, help_text="The code of the problem.")
    policy = models.CharField(
        max_length=40, blank=True, help_text="The policy whose rule it is; of several, the nearest one."
    )
    server_response = models.CharField(
        max_length=120, blank=True, help_text="What the sponsor's server gave instead of a valid response."
    )
    # [[contract, selector]], in order; empty if the payload does not decode.
    actions = models.JSONField(default=list)
    credits = models.BigIntegerField(help_text="The highest cost of the call.")
    gas_price_wei = Uint256Field()
    requests = models.PositiveIntegerField(default=1)
    refused_at = models.DateTimeField(help_text="The time of the last request.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["sponsor", "key"], name="sponsors_refusedrequest_once")
        ]
        indexes = [
            models.Index(fields=["sponsor", "-refused_at", "-id"], name="sponsors_refusedrequest_newest")
        ]

    def __str__(self) -> str:
        return f"{self.rule} of sponsor {self.sponsor_id}"


class SponsoredCall(models.Model):
    """
    The two holds of a relay call that a sponsor pays, wholly or in part. The user's hold has the call's key.

    `counted_credits` and `counted_calls` are the call's current share of the policy's usage.
    """

    hold = models.OneToOneField("credits.CreditHold", models.PROTECT, related_name="sponsored")
    sponsor_hold = models.OneToOneField("credits.CreditHold", models.PROTECT, related_name="sponsors")
    # No index of its own: the index below begins with the version.
    version = models.ForeignKey(PolicyVersion, models.PROTECT, related_name="calls", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False)
    counted_credits = models.BigIntegerField()
    counted_calls = models.PositiveSmallIntegerField(default=1)
    accepted_at = models.DateTimeField(help_text="The call counts in the day and the window of this time.")

    class Meta:
        indexes = [models.Index(fields=["version", "accepted_at"], name="sponsors_sponsoredcall_by_time")]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.ReadOnly(name="counts_change", exclude=["counted_credits", "counted_calls"])
        ]

    def __str__(self) -> str:
        return f"call of hold {self.hold_id}"


# What was removed stays removed; adding it again takes another approval.
_REMOVED = pgtrigger.Protect(
    name="stays_removed",
    operation=pgtrigger.Update,
    condition=pgtrigger.Q(old__removed_at__isnull=False)
    & pgtrigger.Q(old__removed_at__df=pgtrigger.F("new__removed_at")),
)


class VoucherSigner(models.Model):
    """An address whose key signs the sponsor's vouchers until it is removed."""

    sponsor = models.ForeignKey(Sponsor, models.PROTECT, related_name="signers", db_index=False)
    address = AddressField()
    # The owner who added it to a sponsor with a budget. Null for signers that staff have approved.
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, editable=False, related_name="+", db_index=False
    )
    created_at = models.DateTimeField(db_default=Now())
    removed_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["sponsor", "address"],
                condition=Q(removed_at__isnull=True),
                name="sponsors_vouchersigner_active",
            )
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.ReadOnly(name="is_that", fields=["address"]),
            _REMOVED,
        ]

    def __str__(self) -> str:
        return self.address


class Verifier(models.Model):
    """
    A URL of the sponsor's server, which decides whether the sponsor pays for a call, until staff remove it.

    The secret that signs requests to it is encrypted; `sponsors.services.verifiers` decrypts it.
    """

    sponsor = models.ForeignKey(Sponsor, models.PROTECT, related_name="verifiers", db_index=False)
    url = models.CharField(
        "address", max_length=2000, help_text="The https URL to which each question is posted."
    )
    secret = models.TextField(editable=False)
    # Failures in a row, of all processes; the fault of the last one, and the time of the first one.
    failures = models.PositiveIntegerField(db_default=0, editable=False)
    fault = models.CharField(max_length=80, db_default="", editable=False)
    failing_since = models.DateTimeField(null=True, editable=False)
    announced_at = models.DateTimeField(
        null=True, editable=False, help_text="When owners were last told of an outage."
    )
    created_at = models.DateTimeField(db_default=Now())
    removed_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["sponsor"], condition=Q(removed_at__isnull=True), name="sponsors_verifier_active"
            )
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.ReadOnly(name="is_that", fields=["url"]),
            _REMOVED,
        ]

    def __str__(self) -> str:
        return self.url

    @staticmethod
    def allowed_addresses() -> Exceptions:
        """Return the exceptions from "https URLs of public addresses only" that the settings allow for development."""
        return Exceptions(http=settings.WEBHOOK_ALLOW_HTTP, loopback=settings.WEBHOOK_ALLOW_LOOPBACK)

    def clean(self) -> None:
        """Refuse a URL that the service must not request, such as one of a private address."""
        try:
            require_usable(self.url, allowed=self.allowed_addresses())
        except AddressRefused as refusal:
            raise ValidationError({"url": str(refusal)}) from refusal


class UsedVoucher(models.Model):
    """A voucher that a call has used. The unique key prevents a second use, even after the call has failed."""

    sponsor = models.ForeignKey(Sponsor, models.PROTECT, related_name="used_vouchers", db_index=False)
    voucher_id = HashField()
    signer = AddressField()
    call = models.OneToOneField(SponsoredCall, models.PROTECT, related_name="voucher")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["sponsor", "voucher_id"], name="sponsors_usedvoucher_once")
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.Protect(name="used_once", operation=pgtrigger.Update)
        ]

    def __str__(self) -> str:
        return self.voucher_id
