from django.db import migrations, models


class Migration(migrations.Migration):
    reviewed = {"AddConstraint": "on drop items, of which there are a few for each badge"}

    dependencies = [
        ("checkin", "0002_starting_data"),
    ]

    operations = [
        migrations.AddField(
            model_name="checkin",
            name="streak",
            field=models.PositiveSmallIntegerField(
                help_text="Days in a row with a check-in, up to this one. Empty if no item needed a streak.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="dropitem",
            name="streak_days",
            field=models.PositiveSmallIntegerField(
                db_default=0,
                default=0,
                help_text="It can drop from this many days in a row with a check-in, that of the draw included; "
                "0 for always.",
            ),
        ),
        migrations.AddConstraint(
            model_name="dropitem",
            constraint=models.CheckConstraint(
                condition=models.Q(("streak_days__range", (0, 365))),
                name="checkin_dropitem_streak_in_range",
                violation_error_message="A streak has 0 to 365 days.",
            ),
        ),
    ]
