import django.db.models.deletion
import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models

# Credits that the service gives in a UTC day without money or an earning behind them, until staff change it.
CEILING = 1_000_000


class Migration(migrations.Migration):
    """Debt limits: a ceiling for the service, what each hold takes of it, and debtors that return."""

    reviewed = {
        "RunSQL": "it fills a new table",
        "AlterField": "choices alone; no statement runs",
        "RemoveConstraint": "a wider one follows in the same transaction",
    }

    dependencies = [
        ("credits", "0007_expiry_is_known"),
    ]

    operations = [
        migrations.CreateModel(
            name="Debtor",
            fields=[
                (
                    "account",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="debtor",
                        serialize=False,
                        to="credits.creditaccount",
                    ),
                ),
                ("key_id", models.CharField(help_text="Names the key in DEBT_DIGEST_KEYS.", max_length=16)),
                (
                    "digest",
                    models.CharField(help_text="HMAC-SHA256 of the profile's address.", max_length=64),
                ),
                ("erased_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "credits_debtor",
            },
        ),
        migrations.CreateModel(
            name="UnbackedCeiling",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "credits",
                    models.BigIntegerField(
                        help_text="New debt and check-in credits of all users in a UTC day, at most."
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "credits_unbackedceiling",
                "permissions": [
                    ("decide_unbackedceiling", "Can decide other people's requests for this ceiling")
                ],
            },
        ),
        migrations.CreateModel(
            name="UnbackedDay",
            fields=[
                ("day", models.DateField(primary_key=True, serialize=False)),
                ("debt", models.BigIntegerField(default=0)),
                ("check_ins", models.BigIntegerField(default=0)),
            ],
            options={
                "db_table": "credits_unbackedday",
            },
        ),
        migrations.RemoveConstraint(
            model_name="creditentry",
            name="credits_entry_source_known",
        ),
        migrations.AddField(
            model_name="credithold",
            name="debt",
            field=models.BigIntegerField(
                db_default=0, help_text="How much of the amount was new debt when it was set aside."
            ),
        ),
        migrations.AddField(
            model_name="credithold",
            name="debt_day",
            field=models.DateField(help_text="The UTC day that the new debt counts for.", null=True),
        ),
        migrations.AlterField(
            model_name="creditentry",
            name="source",
            field=models.CharField(
                choices=[
                    ("SUBSCRIBED_PAYOUT", "Subscribed Payout"),
                    ("CREDIT_PURCHASE", "Credit Purchase"),
                    ("PUSH_ADS", "Push Ads"),
                    ("VIDEO_ADS", "Video Ads"),
                    ("OFFERWALL", "Offerwall"),
                    ("SURVEYS", "Surveys"),
                    ("CHECK_IN", "Check In"),
                    ("CREDITS_BACK", "Credits Back"),
                    ("RELAY_TRANSACTION", "Relay Transaction"),
                    ("RELAY_REVERSAL", "Relay Reversal"),
                    ("EARNING_REVERSAL", "Earning Reversal"),
                    ("PAYOUT_CLAWBACK", "Payout Clawback"),
                    ("STAFF_ADJUSTMENT", "Staff Adjustment"),
                    ("CREDIT_EXPIRY", "Credit Expiry"),
                    ("DEBT_TRANSFER", "Debt Transfer"),
                ],
                max_length=32,
            ),
        ),
        AddConstraintNotValid(
            model_name="creditentry",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "source__in",
                        [
                            "SUBSCRIBED_PAYOUT",
                            "CREDIT_PURCHASE",
                            "PUSH_ADS",
                            "VIDEO_ADS",
                            "OFFERWALL",
                            "SURVEYS",
                            "CHECK_IN",
                            "CREDITS_BACK",
                            "RELAY_TRANSACTION",
                            "RELAY_REVERSAL",
                            "EARNING_REVERSAL",
                            "PAYOUT_CLAWBACK",
                            "STAFF_ADJUSTMENT",
                            "CREDIT_EXPIRY",
                            "DEBT_TRANSFER",
                        ],
                    )
                ),
                name="credits_entry_source_known",
            ),
        ),
        migrations.AddField(
            model_name="debtor",
            name="successor",
            field=models.ForeignKey(
                help_text="Takes over the debt.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="predecessors",
                to="credits.creditaccount",
            ),
        ),
        migrations.AddConstraint(
            model_name="unbackedceiling",
            constraint=models.CheckConstraint(
                condition=models.Q(("credits__gte", 0), ("credits__lte", 9007199254740991)),
                name="credits_unbackedceiling_in_range",
                violation_error_message="The ceiling is at least 0.",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="unbackedceiling",
            trigger=pgtrigger.compiler.Trigger(
                name="append_only",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;",
                    hash="ead2f98c3484ff0d83bd780240efa3802be35027",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_71883",
                    table="credits_unbackedceiling",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddConstraint(
            model_name="unbackedday",
            constraint=models.CheckConstraint(
                condition=models.Q(("check_ins__gte", 0), ("debt__gte", 0)),
                name="credits_unbackedday_not_negative",
            ),
        ),
        migrations.AddIndex(
            model_name="debtor",
            index=models.Index(fields=["digest"], name="credits_debtor_digest"),
        ),
        migrations.RunSQL(
            [("INSERT INTO credits_unbackedceiling (credits) VALUES (%s)", [CEILING])], migrations.RunSQL.noop
        ),
    ]
