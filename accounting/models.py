"""
Rates of the chains' coins, and months: prepared as often as needed, closed once.

Triggers prevent changes of a closed month. A later correction is an entry, or a movement at Stripe, with a later time,
so it belongs to a later month.
"""

from datetime import date
from typing import ClassVar

import pgtrigger
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from gateway.chain.config import chains

_DAY_OF_CLOSED = """
IF EXISTS (
    SELECT FROM accounting_month
    WHERE status = 'closed'
      AND begins_on IN (date_trunc('month', OLD.day::timestamp)::date, date_trunc('month', NEW.day::timestamp)::date)
) THEN
    RAISE EXCEPTION 'the month of this day is closed';
END IF;
IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
RETURN NEW;
"""


def coins() -> list[str]:
    """Return the coins of the service's chains, that of home first."""
    return list(dict.fromkeys(chain.currency for chain in chains()))


class CoinRate(models.Model):
    """The price of one coin of a chain on a UTC day. Chains with the same coin have the same rates."""

    day = models.DateField()
    coin = models.CharField(max_length=16)
    currency = models.CharField(max_length=3)
    price = models.DecimalField(
        max_digits=20,
        decimal_places=8,
        validators=[MinValueValidator(0)],
        help_text="Price of one coin, in the currency's major unit.",
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        permissions = [("import_coinrate", "Can import rates of the coin")]
        constraints = [
            models.UniqueConstraint(fields=["day", "coin", "currency"], name="coinrate_one_of_coin_per_day"),
            models.CheckConstraint(condition=Q(price__gt=0), name="coinrate_positive"),
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.Trigger(
                name="of_an_open_month",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert | pgtrigger.Update | pgtrigger.Delete,
                func=_DAY_OF_CLOSED,
            )
        ]

    def __str__(self) -> str:
        return f"{self.price.normalize():f} {self.currency.upper()} for 1 {self.coin} on {self.day}"

    def clean(self) -> None:
        """Refuse a coin that no chain has, an unsupported currency, and a day of a closed month."""
        if self.coin not in coins():
            raise ValidationError({"coin": f"Choose one of: {', '.join(coins())}."})
        if self.currency not in settings.BILLING_CURRENCIES:
            raise ValidationError({"currency": f"Choose one of: {', '.join(settings.BILLING_CURRENCIES)}."})
        closed = Month.objects.filter(status=Month.Status.CLOSED)
        if self.day and closed.filter(begins_on=self.day.replace(day=1)).exists():
            raise ValidationError({"day": "The month of this day is closed."})


class Month(models.Model):
    """
    A calendar month (UTC): its sheets, and the opening figures of the next month.

    `closing` has the closing figures by name, in minor units and credits. `problems` lists the reasons why the month
    cannot be closed. `differences` has a line for each amount that differs from Stripe's; a month with differences can
    only be closed with their `explanation`. `digest` is the SHA-256 of all sheets, which an approval names.
    """

    class Status(models.TextChoices):
        PREPARING = "preparing", "Is being prepared"
        OPEN = "open", "Can be prepared again"
        CLOSED = "closed", "Closed"

    begins_on = models.DateField("month", unique=True, help_text="Its first day.")
    status = models.CharField(max_length=10, choices=Status, default=Status.PREPARING)
    rule_version = models.PositiveSmallIntegerField(default=0, help_text="The version of the rule of lots.")
    figures_until = models.DateTimeField(
        null=True, help_text="The figures contain everything before this time."
    )
    prepared_at = models.DateTimeField(null=True)
    problems = models.JSONField(default=list)
    differences = models.TextField(blank=True, default="", db_default="")
    explanation = models.TextField("reason of the differences", blank=True, default="", db_default="")
    closing = models.JSONField(default=dict)
    digest = models.CharField(max_length=64, blank=True, default="")
    closed_at = models.DateTimeField(null=True)
    approval = models.OneToOneField(
        "gateway_admin.ApprovalRequest", models.PROTECT, null=True, related_name="+"
    )

    class Meta:
        permissions = [
            ("prepare_month", "Can prepare a month"),
            ("close_month", "Can ask to close a month"),
            ("decide_month", "Can decide other people's requests to close a month"),
            ("export_month", "Can export months"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(begins_on__day=1), name="month_begins_on_the_first"),
            models.CheckConstraint(
                condition=Q(status="closed", closed_at__isnull=False, approval__isnull=False, problems=[])
                | ~Q(status="closed") & Q(closed_at=None, approval=None),
                name="month_closed_by_approval",
            ),
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.Protect(
                name="closed_for_good",
                operation=pgtrigger.Update | pgtrigger.Delete,
                condition=pgtrigger.Q(old__status="closed"),
            )
        ]

    def __str__(self) -> str:
        return f"{self.begins_on:%Y-%m}"

    @property
    def ends_on(self) -> date:
        """The first day of the next month."""
        return next_month(self.begins_on)


def next_month(first: date) -> date:
    return date(first.year + first.month // 12, first.month % 12 + 1, 1)


_OF_CLOSED = """
IF EXISTS (SELECT FROM accounting_month WHERE id IN (OLD.month_id, NEW.month_id) AND status = 'closed') THEN
    RAISE EXCEPTION 'the month is closed';
END IF;
IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
RETURN NEW;
"""


class MonthSheet(models.Model):
    """
    A part of a table of a month: at most `PART_ROWS` rows.

    `columns` has a title and a kind for each column; the kind determines how a value is shown. Money is stored in minor
    units, gas in wei, and a person as the user's id, so that no sheet names an erased person.
    """

    PART_ROWS: ClassVar = 2_000

    month = models.ForeignKey(Month, models.CASCADE, related_name="sheets")
    name = models.CharField(max_length=40)
    place = models.PositiveSmallIntegerField()
    part = models.PositiveIntegerField(default=0)
    columns = models.JSONField()
    rows = models.JSONField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["month", "place", "part"], name="monthsheet_part")]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.Trigger(
                name="of_an_open_month",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert | pgtrigger.Update | pgtrigger.Delete,
                func=_OF_CLOSED,
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.part}"
