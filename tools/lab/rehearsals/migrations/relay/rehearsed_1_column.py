"""A column with a default in the database, which old processes do not write, and a constraint for new rows."""

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("relay", "0001_initial")]

    operations = [
        migrations.AddField("relaytransaction", "rehearsed", models.BooleanField(db_default=False)),
        migrations.AddField("relaytransaction", "rehearsed_at", models.DateTimeField(null=True)),
        AddConstraintNotValid(
            "relaytransaction",
            models.CheckConstraint(
                condition=models.Q(rehearsed=False) | models.Q(rehearsed_at__isnull=False),
                name="rehearsed_has_time",
            ),
        ),
    ]
