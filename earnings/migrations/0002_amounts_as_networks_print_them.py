from django.db import migrations, models

_REASON = (
    "PostgreSQL changes only the type's limit: a wider numeric of the same scale needs no rewrite and no scan"
)


class Migration(migrations.Migration):
    dependencies = [("earnings", "0001_initial")]
    reviewed = {"AlterField": _REASON}

    operations = [
        migrations.AlterField(
            model_name="postback",
            name="amount",
            field=models.DecimalField(decimal_places=12, help_text="In the network's unit.", max_digits=36),
        ),
        migrations.AlterField(
            model_name="postback",
            name="payout_usd",
            field=models.DecimalField(decimal_places=12, max_digits=36, null=True),
        ),
        migrations.AlterField(
            model_name="postback",
            name="takes_back",
            field=models.DecimalField(
                decimal_places=12,
                help_text="For a reversal: the amount to take back, in the network's unit; empty for all of it.",
                max_digits=36,
                null=True,
            ),
        ),
    ]
