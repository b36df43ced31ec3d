import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    reviewed = {"AlterField": "only the choices change, which the database does not have, so nothing is run"}

    dependencies = [
        ("sponsors", "0007_holdings"),
    ]

    operations = [
        migrations.AlterField(
            model_name="policyversion",
            name="profiles",
            field=models.CharField(
                choices=[
                    ("all", "Every profile"),
                    ("listed", "Listed profiles"),
                    ("new", "Profiles that signed in here first after a date"),
                    ("vouched", "Profiles with a voucher of the sponsor"),
                    ("holding", "Profiles that hold a token"),
                    ("followed", "Profiles that a given profile follows"),
                    ("follower", "Profiles that follow a given profile"),
                    ("verified", "Profiles for whose call the sponsor's verifier answers yes"),
                ],
                default="all",
                max_length=8,
            ),
        ),
        migrations.CreateModel(
            name="Verifier",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "url",
                    models.CharField(
                        help_text="The https URL to which each question is posted.",
                        max_length=2000,
                        verbose_name="address",
                    ),
                ),
                ("secret", models.TextField(editable=False)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("removed_at", models.DateTimeField(editable=False, null=True)),
                (
                    "sponsor",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="verifiers",
                        to="sponsors.sponsor",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("removed_at__isnull", True)),
                        fields=("sponsor",),
                        name="sponsors_verifier_active",
                    )
                ],
            },
        ),
    ]
