import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("credits", "0007_sources_are_known"),
    ]

    operations = [
        migrations.CreateModel(
            name="HomeCredits",
            fields=[
                (
                    "account",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="home_credits",
                        serialize=False,
                        to="credits.creditaccount",
                    ),
                ),
                ("credits", models.BigIntegerField()),
                (
                    "chain_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), default=list, size=None
                    ),
                ),
                ("expires_at", models.DateTimeField()),
            ],
            options={
                "verbose_name_plural": "home credits",
                "db_table": "credits_homecredits",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("credits__gte", 1)), name="credits_homecredits_positive"
                    )
                ],
            },
        ),
    ]
