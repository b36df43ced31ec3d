import django.db.models.deletion
import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

import gateway.common.fields


class Migration(migrations.Migration):
    reviewed = {"AlterField": "choices alone; no statement runs"}

    dependencies = [
        ("credits", "0005_paid_only"),
        ("relay", "0004_credit_prices"),
        ("sponsors", "0006_profile_policies"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="relaytransaction",
            name="deploys_profile",
            field=models.BooleanField(db_default=False, default=False),
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
                    ("overtaken", "deployment of a profile that somebody else deployed first"),
                ],
                max_length=16,
            ),
        ),
        migrations.CreateModel(
            name="ProfileCreation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("chain_id", models.BigIntegerField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("created", "deploy a new profile"),
                            ("registered", "open an account for an existing profile"),
                        ],
                        default="created",
                        max_length=10,
                    ),
                ),
                ("request_key", gateway.common.fields.HashField()),
                ("body_hash", gateway.common.fields.HashField()),
                ("profile_address", gateway.common.fields.AddressField()),
                ("key_manager_address", gateway.common.fields.AddressField()),
                ("controllers", models.JSONField(default=list)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "hold",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="profile_creations",
                        to="credits.credithold",
                    ),
                ),
                (
                    "sponsor",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="profile_creations",
                        to="sponsors.sponsor",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="profile_creations",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["sponsor", "profile_address"], name="profilecreation_of_profile"),
                    models.Index(fields=["sponsor", "-created_at"], name="profilecreation_by_time"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("sponsor", "request_key"), name="profilecreation_request")
                ],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="profilecreation",
            trigger=pgtrigger.compiler.Trigger(
                name="asked_for_that",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition='WHEN (OLD."sponsor_id" IS DISTINCT FROM (NEW."sponsor_id") OR OLD."kind" IS DISTINCT FROM (NEW."kind") OR OLD."created_at" IS DISTINCT FROM (NEW."created_at"))',
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;",
                    hash="127feb4b85c5fdc3f9982f5cde36a40296d83229",
                    operation="UPDATE",
                    pgid="pgtrigger_asked_for_that_a2b16",
                    table="relay_profilecreation",
                    when="BEFORE",
                ),
            ),
        ),
    ]
