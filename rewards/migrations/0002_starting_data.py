"""Begin with ten permanent and five subscriber badges; staff shape them from then on."""

from decimal import Decimal
from itertools import pairwise

from django.db import migrations

# Permanent experience is one per credit earned or spent.
# name, from experience, growth, bonus on every earning, check-in attempts more, credits back, debt in credits
PERMANENT = (
    ("Newcomer", 0, "1", "0", 0, "0", 0),
    ("Walker", 1_000, "1", "0.01", 0, "0.005", 100),
    ("Wanderer", 5_000, "1.02", "0.02", 0, "0.01", 250),
    ("Explorer", 20_000, "1.04", "0.03", 1, "0.015", 500),
    ("Navigator", 60_000, "1.06", "0.05", 1, "0.02", 750),
    ("Pathfinder", 150_000, "1.08", "0.07", 1, "0.03", 1_000),
    ("Pioneer", 400_000, "1.10", "0.10", 1, "0.04", 1_500),
    ("Trailblazer", 1_000_000, "1.12", "0.13", 2, "0.05", 2_500),
    ("Luminary", 3_000_000, "1.15", "0.16", 2, "0.06", 4_000),
    ("Legend", 10_000_000, "1.20", "0.20", 2, "0.08", 6_000),
)
# Subscriber experience is one per minor unit collected: 1,000 is a month at 10.00.
SUBSCRIBER = (
    ("Bronze", 0, "1", "0.05", 0, "0.02", 500),
    ("Silver", 3_000, "1.05", "0.08", 1, "0.03", 1_000),
    ("Gold", 12_000, "1.10", "0.12", 1, "0.05", 2_000),
    ("Platinum", 36_000, "1.15", "0.16", 2, "0.07", 4_000),
    ("Diamond", 100_000, "1.20", "0.20", 2, "0.10", 8_000),
)


def begin(apps, schema_editor):
    badges = apps.get_model("rewards", "Badge").objects
    for track, ladder in (("PERMANENT", PERMANENT), ("SUBSCRIBER", SUBSCRIBER)):
        if badges.filter(track=track).exists():
            continue
        for step, following in pairwise((*ladder, None)):
            badges.create(track=track, **_badge(step, following))


def _badge(step, following):
    name, begins, growth, bonus, attempts, back, debt = step
    earnings = ("push_ads", "video_ads", "offerwall", "surveys")
    return {
        "name": name,
        "exp_lower_bound": begins,
        "exp_upper_bound": following and following[1],
        "exp_growth_rate": Decimal(growth),
        **{f"bonus_creds_{earning}": Decimal(bonus) for earning in earnings},
        "bonus_daily_check_in_attempts": attempts,
        "credits_back_percent": Decimal(back),
        "acceptable_credit_debt": debt,
    }


class Migration(migrations.Migration):
    dependencies = [("rewards", "0001_initial")]

    operations = [migrations.RunPython(begin, migrations.RunPython.noop)]
