"""A column with a default in the database, which old processes do not write, and a constraint for new rows."""

from pkgutil import iter_modules

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models

from relay import migrations as released

_LAST = max(module.name for module in iter_modules(released.__path__))


class Migration(migrations.Migration):
    dependencies = [("relay", _LAST)]

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
