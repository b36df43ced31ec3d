"""Begin with a rate for each currency, a thousand credits for 1.00, and three packs; staff shape them from then on."""

from datetime import UTC, datetime

from django.db import migrations

CURRENCIES = ("usd", "eur", "gbp", "chf")
# Of packs, in hundredths of each currency.
PRICES = (500, 1000, 2500)


def begin(apps, schema_editor):
    rates = apps.get_model("payments", "PayoutRate").objects
    packs = apps.get_model("payments", "CreditPack").objects
    for currency in CURRENCIES:
        rates.get_or_create(
            currency=currency,
            valid_from=datetime(2020, 1, 1, tzinfo=UTC),
            defaults={"credits_per_major_unit": 1000},
        )
        for price in PRICES:
            packs.create(code=f"{currency}-{price // 100}", currency=currency, amount_minor=price)


class Migration(migrations.Migration):
    dependencies = [("payments", "0001_initial")]

    operations = [migrations.RunPython(begin, migrations.RunPython.noop)]
