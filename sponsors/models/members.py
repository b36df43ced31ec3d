"""
Sponsors, and the members and keys that act for them.

A sponsor owns a credit account (`credits.CreditAccount.sponsor`).
"""

from typing import ClassVar

import pgtrigger
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Sponsor(models.Model):
    """An organisation that pays for its users' relay calls from its own credit account."""

    slug = models.SlugField(max_length=40, unique=True, help_text="Calls name the sponsor by it.")
    name = models.CharField(max_length=80)
    is_frozen = models.BooleanField(db_default=False, help_text="A frozen sponsor pays for no new calls.")
    alarm_credits = models.BigIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Members are notified when fewer credits are left. Leave empty for no alarm.",
    )
    is_default = models.BooleanField(
        db_default=False,
        help_text="The default sponsor pays for calls of users without credits if no other sponsor does.",
    )
    opened_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        null=True,
        editable=False,
        related_name="opened_sponsors",
        db_index=False,
        help_text="The person who opened it without staff.",
    )
    # A sponsor with a budget may change its policies alone. Both parts are set, or none.
    day_credits = models.BigIntegerField(
        null=True, editable=False, help_text="The budget of a UTC day, of all policies together."
    )
    month_credits = models.BigIntegerField(
        null=True, editable=False, help_text="The budget of a UTC month, of all policies together."
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        permissions = [
            ("freeze_sponsor", "Can freeze sponsors and switch off policies"),
            ("fund_sponsor", "Can ask for an adjustment of a sponsor's credits"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["is_default"], condition=Q(is_default=True), name="sponsors_sponsor_one_default"
            ),
            models.CheckConstraint(
                condition=Q(day_credits__isnull=True, month_credits__isnull=True)
                | Q(
                    day_credits__isnull=False,
                    month_credits__isnull=False,
                    day_credits__gte=1,
                    month_credits__gte=1,
                ),
                name="sponsors_sponsor_budget",
            ),
        ]
        # Calls name the sponsor by its slug, so a changed one would charge another sponsor.
        triggers: ClassVar[list[pgtrigger.Trigger]] = [pgtrigger.ReadOnly(name="slug_stays", fields=["slug"])]

    def __str__(self) -> str:
        return self.slug

    @property
    def has_budget(self) -> bool:
        return self.day_credits is not None


class BudgetUse(models.Model):
    """Credits that count towards a sponsor's budget of a UTC day or month: captured, or held by calls in flight."""

    class Scope(models.TextChoices):
        DAY = "day"
        MONTH = "month"

    sponsor = models.ForeignKey(Sponsor, models.PROTECT, related_name="budget_use", db_index=False)
    scope = models.CharField(max_length=5, choices=Scope)
    begins = models.DateTimeField()
    credits = models.BigIntegerField()

    class Meta:
        verbose_name_plural = "budget use"
        constraints = [
            models.UniqueConstraint(fields=["sponsor", "scope", "begins"], name="sponsors_budgetuse_once"),
            models.CheckConstraint(condition=Q(credits__gte=0), name="sponsors_budgetuse_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.scope} of sponsor {self.sponsor_id}"


class Member(models.Model):
    """
    A person who acts for a sponsor, signed in with a profile, or as the owner of an e-mail address.

    The last owner cannot be removed until there is another one.
    """

    class Role(models.TextChoices):
        VIEWER = "viewer", "Viewer: sees everything, changes nothing"
        MANAGER = "manager", "Manager: also keys and funds"
        OWNER = "owner", "Owner: also members"

    sponsor = models.ForeignKey(Sponsor, models.PROTECT, related_name="members", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="memberships")
    role = models.CharField(max_length=7, choices=Role)
    # Null and not empty, so that the unique key does not apply to members with profiles.
    email = models.EmailField(null=True, help_text="Address of a member without a profile.")  # noqa: DJ001
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["sponsor", "user"], name="sponsors_member_once"),
            models.UniqueConstraint(fields=["sponsor", "email"], name="sponsors_member_email"),
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.user_id} of sponsor {self.sponsor_id}"


class MemberSession(models.Model):
    """
    A session of a member without a profile. It ends with the membership.

    The token has 256 random bits, so its SHA-256 needs no salt.
    """

    member = models.ForeignKey(Member, models.CASCADE, related_name="sessions")
    token_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"session {self.pk} of member {self.member_id}"


class ApiKey(models.Model):
    """
    A key with which a sponsor's server uses the API. The key has 256 random bits, so its SHA-256 needs no salt.

    A rotated key is valid until `expires_at`. A revoked one is not valid any more, nor is one whose maker is no longer
    a member.
    """

    sponsor = models.ForeignKey(Sponsor, models.PROTECT, related_name="keys")
    name = models.CharField(max_length=40, help_text="What the key is used for.")
    key_hash = models.CharField(max_length=64, unique=True)
    hint = models.CharField(max_length=8, help_text="The key's last characters.")
    scopes = ArrayField(models.CharField(max_length=8))
    networks = ArrayField(
        models.CharField(max_length=43),
        default=list,
        help_text="Networks that may use the key. An empty list allows all.",
    )
    # Null only for keys that version 1.0 made while it was being replaced.
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+", db_index=False
    )
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True, help_text="Recorded to the hour.")
    revoked_at = models.DateTimeField(null=True)
    # Set by `sponsors.services.keys.with_maker`.
    maker_role: str | None
    maker_email: str | None

    class Meta:
        verbose_name = "API key"
        verbose_name_plural = "API keys"

    def __str__(self) -> str:
        return f"{self.name} …{self.hint}"
