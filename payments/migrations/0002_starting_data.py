"""Begin with a rate for each currency: a thousand credits for 1.00, whatever the currency."""

from datetime import UTC, datetime

from django.db import migrations

CURRENCIES = ("usd", "eur", "gbp", "chf")


def begin(apps, schema_editor):
    rates = apps.get_model("payments", "PayoutRate").objects
    for currency in CURRENCIES:
        rates.get_or_create(
            currency=currency,
            valid_from=datetime(2020, 1, 1, tzinfo=UTC),
            defaults={"credits_per_major_unit": 1000},
        )


class Migration(migrations.Migration):
    dependencies = [("payments", "0001_initial")]

    operations = [migrations.RunPython(begin, migrations.RunPython.noop)]
