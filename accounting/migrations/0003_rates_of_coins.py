from django.conf import settings
from django.db import migrations, models

_ADD = "ALTER TABLE accounting_coinrate ADD COLUMN coin varchar(16) NOT NULL DEFAULT %s"


def name_coins(apps, schema_editor):
    """All rates so far are of the home chain's coin. The default stays in the database, for the previous version."""
    schema_editor.execute(_ADD, [settings.CHAIN_COIN])


def forget_coins(apps, schema_editor):
    schema_editor.execute("ALTER TABLE accounting_coinrate DROP COLUMN coin")


class Migration(migrations.Migration):
    reviewed = {
        "RunPython": "a column with a constant default; no row is rewritten",
        "RemoveConstraint": "staff import rates; an import by the previous version fails, and is repeated after the upgrade",
        "AddConstraint": "the table has a few rows for each day",
    }

    dependencies = [("accounting", "0002_explained_months")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddField(
                    model_name="coinrate",
                    name="coin",
                    field=models.CharField(default="", max_length=16),
                    preserve_default=False,
                ),
            ],
            database_operations=[migrations.RunPython(name_coins, forget_coins)],
        ),
        migrations.RemoveConstraint(model_name="coinrate", name="coinrate_one_per_day"),
        migrations.AddConstraint(
            model_name="coinrate",
            constraint=models.UniqueConstraint(
                fields=("day", "coin", "currency"), name="coinrate_one_of_coin_per_day"
            ),
        ),
    ]
