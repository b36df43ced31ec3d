"""Begin with a published drop table for every badge, better from badge to badge; staff shape them from then on."""

from decimal import Decimal

from django.db import migrations
from django.utils import timezone

_EARNINGS = ("PUSH_ADS", "VIDEO_ADS", "OFFERWALL", "SURVEYS")


def _permanent(rank):
    """Return the items of the permanent badge of that rank: type, weight, least, most, minutes."""
    minutes = 60 + 30 * rank
    return [
        ("EXPERIENCE", 50, 20 + 10 * rank, 60 + 30 * rank, None),
        ("EXPERIENCE", 14, 100 + 40 * rank, 250 + 100 * rank, None),
        ("CREDITS", 20, 10 + 10 * rank, 40 + 30 * rank, None),
        *[
            _bonus(earning, 7 - place, 2 + rank, 5 + rank, minutes)
            for place, earning in enumerate(_EARNINGS, 3)
        ],
        ("BONUS_CREDITS_BACK", 6, _percent(1 + rank), _percent(3 + rank), minutes),
    ]


def _subscriber(rank):
    minutes = 240 + 120 * rank
    return [
        ("EXPERIENCE", 30, 50 + 50 * rank, 150 + 150 * rank, None),
        ("CREDITS", 30, 40 + 30 * rank, 120 + 90 * rank, None),
        *[_bonus(earning, 8, 5 + 2 * rank, 10 + 5 * rank, minutes) for earning in _EARNINGS],
        ("BONUS_CREDITS_BACK", 8, _percent(2 + rank), _percent(5 + 2 * rank), minutes),
    ]


def _bonus(earning, weight, least, most, minutes):
    return (f"BONUS_{earning}_CREDITS", weight, _percent(least), _percent(most), minutes)


def _percent(number):
    return Decimal(number) / 100


def begin(apps, schema_editor):
    badges = apps.get_model("rewards", "Badge").objects
    for track, items_of in (("PERMANENT", _permanent), ("SUBSCRIBER", _subscriber)):
        for rank, badge in enumerate(badges.filter(track=track).order_by("exp_lower_bound")):
            _publish(apps, badge, items_of(rank))


def _publish(apps, badge, items):
    tables, rows = (
        apps.get_model("checkin", "DropTable").objects,
        apps.get_model("checkin", "DropItem").objects,
    )
    if tables.filter(badge_id=badge.pk).exists():
        return
    table = tables.create(badge_id=badge.pk, version=1)
    names = ("drop_type", "weight", "value_min", "value_max", "minutes")
    rows.bulk_create([rows.model(table=table, **dict(zip(names, item, strict=True))) for item in items])
    tables.filter(pk=table.pk).update(published_at=timezone.now())


class Migration(migrations.Migration):
    dependencies = [("checkin", "0001_initial"), ("rewards", "0002_starting_data")]

    operations = [migrations.RunPython(begin, migrations.RunPython.noop)]
