"""
What may drop for whom: one table of items per badge, in versions.

A table is a draft until a second person publishes it. Published, it never changes
again, because draws are recomputed from it; the database refuses every attempt.
"""

from decimal import Decimal
from typing import Any, ClassVar

import pgtrigger
from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Floor, Now

from credits.models import Badge

LARGEST_WEIGHT = 1_000_000
LARGEST_FRACTION = Decimal(1)
LONGEST_MINUTES = 30 * 24 * 60

_MORE_THAN_ITS_BADGE_IS_GONE = """
OLD.published_at IS NOT NULL
AND (NEW.badge_id IS NOT NULL OR to_jsonb(NEW) - 'badge_id' IS DISTINCT FROM to_jsonb(OLD) - 'badge_id')
"""

# The share lock makes publishing wait for an item that is being written, and the item for publishing.
_REFUSE_ITEMS_OF_PUBLISHED = """
PERFORM FROM checkin_droptable WHERE id IN (OLD.table_id, NEW.table_id) FOR SHARE;
IF EXISTS (
    SELECT FROM checkin_droptable WHERE id IN (OLD.table_id, NEW.table_id) AND published_at IS NOT NULL
) THEN
    RAISE EXCEPTION 'the items of a published drop table never change'
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'checkin_dropitem_published';
END IF;
RETURN coalesce(NEW, OLD);
"""


class DropType(models.TextChoices):
    """What may drop: amounts that take effect at once, and bonuses for some minutes."""

    EXPERIENCE = "EXPERIENCE"
    CREDITS = "CREDITS"
    BONUS_PUSH_ADS_CREDITS = "BONUS_PUSH_ADS_CREDITS"
    BONUS_VIDEO_ADS_CREDITS = "BONUS_VIDEO_ADS_CREDITS"
    BONUS_OFFERWALL_CREDITS = "BONUS_OFFERWALL_CREDITS"
    BONUS_SURVEYS_CREDITS = "BONUS_SURVEYS_CREDITS"
    BONUS_CREDITS_BACK = "BONUS_CREDITS_BACK"


# Whole numbers that take effect at once and have no minutes.
AMOUNTS = ["CREDITS", "EXPERIENCE"]


def _staff(help_text: str) -> Any:
    return models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        help_text=help_text,
    )


class DropTable(models.Model):
    """
    The drops of those who wear a badge. The one published last is in force.

    A badge that staff take out of its ladder leaves its tables behind, without a badge.
    """

    badge = models.ForeignKey(
        Badge, null=True, on_delete=models.SET_NULL, related_name="drop_tables", db_index=False
    )
    version = models.PositiveIntegerField(help_text="Counts the tables of the badge.")
    author = _staff("Who wrote it; nobody else may change the draft. Empty for the first tables.")
    created_at = models.DateTimeField(db_default=Now())
    published_at = models.DateTimeField(null=True, blank=True, help_text="Empty while it is a draft.")
    published_by = _staff("Who approved it; never the author.")

    class Meta:
        permissions = [("publish_droptable", "Can publish a drop table of somebody else")]
        indexes = [
            models.Index(fields=["badge", "-published_at", "-id"], name="checkin_droptable_in_force"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["badge", "version"], name="checkin_droptable_version"),
            models.CheckConstraint(
                condition=Q(published_by=None)
                | Q(published_at__isnull=False, author__isnull=False) & ~Q(published_by=F("author")),
                name="checkin_droptable_second_person",
                violation_error_message="A second person publishes a table.",
            ),
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.Protect(
                name="published_stays",
                operation=pgtrigger.Delete,
                condition=pgtrigger.Q(old__published_at__isnull=False),
            ),
            pgtrigger.Protect(
                name="published_never_changes",
                operation=pgtrigger.Update,
                condition=pgtrigger.Condition(_MORE_THAN_ITS_BADGE_IS_GONE),
            ),
        ]

    def __str__(self) -> str:
        return f"drop table {self.pk}: {self.badge or 'no badge'}, version {self.version}"


class DropItem(models.Model):
    """One kind of drop: how likely it is against the others, its values, and how long it lasts."""

    table = models.ForeignKey(DropTable, on_delete=models.CASCADE, related_name="items")
    drop_type = models.CharField(max_length=32, choices=DropType)
    weight = models.PositiveIntegerField(help_text="Likelihood against the weights of the other items.")
    value_min = models.DecimalField(
        max_digits=13, decimal_places=4, help_text="Whole experience or credits; of a bonus 0.05 is 5 %."
    )
    value_max = models.DecimalField(max_digits=13, decimal_places=4)
    minutes = models.PositiveIntegerField(
        null=True, blank=True, help_text="How long a bonus lasts; empty for experience and credits."
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(drop_type__in=DropType.values), name="checkin_dropitem_type_known"
            ),
            models.CheckConstraint(
                condition=Q(weight__range=(1, LARGEST_WEIGHT)),
                name="checkin_dropitem_weight_in_range",
                violation_error_message="A weight is between 1 and 1,000,000.",
            ),
            models.CheckConstraint(
                condition=Q(value_min__gt=0, value_max__gte=F("value_min")),
                name="checkin_dropitem_values_in_order",
                violation_error_message="The least value is above 0 and not above the largest.",
            ),
            models.CheckConstraint(
                condition=~Q(drop_type__in=AMOUNTS)
                | Q(value_min=Floor("value_min"), value_max=Floor("value_max"), minutes=None),
                name="checkin_dropitem_amounts_are_whole",
                violation_error_message="Experience and credits are whole and have no minutes.",
            ),
            models.CheckConstraint(
                condition=Q(drop_type__in=AMOUNTS)
                | Q(
                    minutes__isnull=False,
                    minutes__range=(1, LONGEST_MINUTES),
                    value_max__lte=LARGEST_FRACTION,
                ),
                name="checkin_dropitem_bonuses_are_bounded",
                violation_error_message="A bonus is a fraction up to 1 and lasts 1 minute to 30 days.",
            ),
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.Trigger(
                name="published_stays",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert | pgtrigger.Update | pgtrigger.Delete,
                func=_REFUSE_ITEMS_OF_PUBLISHED,
            )
        ]

    def __str__(self) -> str:
        return f"{self.drop_type} {self.value_min.normalize():f}–{self.value_max.normalize():f}"
