import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="CreditAccount",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("balance", models.BigIntegerField(default=0, help_text="Credits: the sum of all entries.")),
                ("held", models.BigIntegerField(default=0, help_text="Credits set aside by open holds.")),
                ("open_holds", models.IntegerField(default=0, help_text="How many holds are open.")),
                (
                    "version",
                    models.BigIntegerField(default=0, help_text="How many entries have been posted."),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "credits_account",
                "permissions": [
                    ("adjust_credits", "Can ask for an adjustment"),
                    ("decide_adjustment", "Can decide other people's requests for adjustments"),
                    ("export_creditaccount", "Can export accounts"),
                ],
            },
        ),
        migrations.CreateModel(
            name="CreditEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("amount", models.BigIntegerField(help_text="Credits; negative for a charge.")),
                (
                    "source",
                    models.CharField(
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
                (
                    "key",
                    models.CharField(
                        db_collation="C", help_text="Idempotency key, which names the cause.", max_length=255
                    ),
                ),
                ("balance_before", models.BigIntegerField()),
                ("balance_after", models.BigIntegerField()),
                ("account_version", models.BigIntegerField()),
                ("reason", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "verbose_name_plural": "credit entries",
                "db_table": "credits_entry",
                "permissions": [("export_creditentry", "Can export entries")],
            },
        ),
        migrations.CreateModel(
            name="CreditHold",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "key",
                    models.CharField(
                        db_collation="C", help_text="Idempotency key, which names the cause.", max_length=255
                    ),
                ),
                ("amount", models.BigIntegerField(help_text="Credits set aside.")),
                (
                    "status",
                    models.CharField(
                        choices=[("HELD", "Held"), ("CAPTURED", "Captured"), ("RELEASED", "Released")],
                        default="HELD",
                        max_length=16,
                    ),
                ),
                (
                    "captured_amount",
                    models.BigIntegerField(help_text="Credits charged; may exceed the amount.", null=True),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("closed_at", models.DateTimeField(null=True)),
                (
                    "reopenings",
                    models.PositiveSmallIntegerField(
                        db_default=0, help_text="How often the closed hold was reopened."
                    ),
                ),
                (
                    "debt",
                    models.BigIntegerField(
                        db_default=0, help_text="How much of the amount was new debt when it was set aside."
                    ),
                ),
                (
                    "debt_day",
                    models.DateField(help_text="The UTC day that the new debt counts for.", null=True),
                ),
            ],
            options={
                "db_table": "credits_hold",
            },
        ),
        migrations.CreateModel(
            name="ExpiringLot",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "credits",
                    models.BigIntegerField(help_text="Credits that were left when it was announced."),
                ),
                ("expires_at", models.DateTimeField(db_index=True)),
                ("announced_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name="ExpiryRule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "days",
                    models.PositiveIntegerField(
                        blank=True, help_text="At least 30. Empty: given credits do not expire.", null=True
                    ),
                ),
                ("valid_from", models.DateTimeField(unique=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "permissions": [
                    ("decide_expiryrule", "Can decide other people's requests about the expiry of credits")
                ],
            },
        ),
        migrations.CreateModel(
            name="ReconciliationRun",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("ledger", "ledger against accounts"),
                            ("roots", "entries against signed roots"),
                            ("chain", "chain against captures"),
                            ("stripe", "Stripe against payouts"),
                        ],
                        max_length=16,
                    ),
                ),
                ("started_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(null=True)),
                ("counts", models.JSONField(default=dict)),
                ("findings", models.JSONField(default=list)),
            ],
            options={
                "db_table": "credits_reconciliationrun",
                "permissions": [
                    ("run_reconciliation", "Can have the ledger and the chain compared"),
                    ("run_stripe_reconciliation", "Can have Stripe compared"),
                ],
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
        migrations.CreateModel(
            name="Allowance",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("credits", models.BigIntegerField(help_text="Credits paid out for the period.")),
                ("starts_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField(help_text="End of the paid period.")),
                ("resets_at", models.DateTimeField(help_text="End of the provider's current period.")),
                (
                    "renews",
                    models.BooleanField(
                        help_text="The subscription is active or past due, and not cancelling."
                    ),
                ),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="allowance",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "credits_allowance",
            },
        ),
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
    ]
