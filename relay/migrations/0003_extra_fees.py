from django.db import migrations, models

import gateway.common.fields


class Migration(migrations.Migration):
    reviewed = {"AlterField": "choices alone; no statement runs"}

    dependencies = [
        ("relay", "0002_leasttip"),
    ]

    operations = [
        migrations.AddField(
            model_name="attempt",
            name="extra_fee_wei",
            field=gateway.common.fields.Uint256Field(
                db_default=0, help_text="What the chain has charged besides gas."
            ),
        ),
        migrations.AddField(
            model_name="attempt",
            name="max_extra_fee_wei",
            field=gateway.common.fields.Uint256Field(
                db_default=0, help_text="The most that the chain charges besides gas."
            ),
        ),
        migrations.AddField(
            model_name="quote",
            name="max_extra_fee_wei",
            field=gateway.common.fields.Uint256Field(
                db_default=0, help_text="The most besides gas that the loss reservation covers."
            ),
        ),
        migrations.AlterField(
            model_name="loss",
            name="kind",
            field=models.CharField(
                choices=[
                    ("replacement", "replacement that costs more than the hold"),
                    ("cancellation", "self-transfer that cancels a call"),
                    ("untrusted", "call of untrusted code"),
                    ("gap", "self-transfer that fills a gap"),
                    ("quote", "quote"),
                    ("extra-fee", "fee besides gas above the hold"),
                ],
                max_length=16,
            ),
        ),
    ]
