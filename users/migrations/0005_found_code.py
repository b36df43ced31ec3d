from django.db import migrations, models

import gateway.common.fields


class Migration(migrations.Migration):
    dependencies = [
        ("users", "0004_bans"),
    ]

    operations = [
        migrations.CreateModel(
            name="FoundCode",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("chain_id", models.BigIntegerField()),
                ("address", gateway.common.fields.AddressField()),
                ("code_hash", gateway.common.fields.HashField()),
                ("found_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("chain_id", "address"), name="foundcode_one_per_address")
                ],
            },
        ),
    ]
