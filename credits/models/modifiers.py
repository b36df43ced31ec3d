"""Bonuses for a time: won at a check-in, or given by staff."""

from decimal import Decimal

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now


class ModifierType(models.TextChoices):
    """What a modifier raises."""

    BONUS_PUSH_ADS_CREDITS = "BONUS_PUSH_ADS_CREDITS"
    BONUS_VIDEO_ADS_CREDITS = "BONUS_VIDEO_ADS_CREDITS"
    BONUS_OFFERWALL_CREDITS = "BONUS_OFFERWALL_CREDITS"
    BONUS_SURVEYS_CREDITS = "BONUS_SURVEYS_CREDITS"
    BONUS_CREDITS_BACK = "BONUS_CREDITS_BACK"


class ModifierQuerySet(models.QuerySet["Modifier"]):
    def active(self) -> "ModifierQuerySet":
        """Keep what is in force by the database's clock: `created_at <= now < expires_at`."""
        return self.filter(created_at__lte=Now(), expires_at__gt=Now())


class Modifier(models.Model):
    """A fraction that is added to the badges' while `created_at <= t < expires_at`."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="modifiers", db_index=False
    )
    modifier_type = models.CharField(max_length=32, choices=ModifierType)
    value = models.DecimalField(max_digits=7, decimal_places=4, help_text="0.05 is 5 % more.")
    key = models.CharField(max_length=255, unique=True, help_text="Names the cause; the same key gives once.")
    reason = models.TextField(blank=True, default="")
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        help_text="The member of staff who gave it.",
    )
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()

    objects = ModifierQuerySet.as_manager()

    class Meta:
        db_table = "credits_modifier"
        indexes = [
            models.Index(fields=["user", "expires_at"], name="credits_modifier_user"),
            models.Index(fields=["expires_at"], name="credits_modifier_expires"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(modifier_type__in=ModifierType.values), name="credits_modifier_type_known"
            ),
            models.CheckConstraint(
                condition=Q(value__gt=0, value__lte=Decimal(10)), name="credits_modifier_value_in_range"
            ),
            models.CheckConstraint(
                condition=Q(expires_at__gt=F("created_at")), name="credits_modifier_expires_after_creation"
            ),
        ]

    def __str__(self) -> str:
        return f"modifier {self.pk}: {self.modifier_type} +{self.value}"
