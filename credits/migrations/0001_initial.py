import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
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
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="credit_account",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "credits_account",
                "permissions": [
                    ("adjust_credits", "Can ask for an adjustment"),
                    ("decide_adjustment", "Can decide other people's requests for adjustments"),
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
                        ],
                        max_length=32,
                    ),
                ),
                (
                    "key",
                    models.CharField(
                        db_collation="C",
                        help_text="Idempotency key, which names the cause.",
                        max_length=255,
                    ),
                ),
                ("balance_before", models.BigIntegerField()),
                ("balance_after", models.BigIntegerField()),
                ("account_version", models.BigIntegerField()),
                ("reason", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "account",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="entries",
                        to="credits.creditaccount",
                    ),
                ),
                (
                    "actor",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        help_text="The member of staff who adjusted.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "credit entries",
                "db_table": "credits_entry",
                "permissions": [("export_creditentry", "Can export entries")],
            },
        ),
        migrations.CreateModel(
            name="LedgerRoot",
            fields=[
                (
                    "number",
                    models.BigIntegerField(
                        help_text="From 1, without a gap.", primary_key=True, serialize=False
                    ),
                ),
                ("closed_at", models.DateTimeField()),
                (
                    "last_entry_id",
                    models.BigIntegerField(help_text="No entry up to this one is under a later root."),
                ),
                ("entry_count", models.IntegerField(help_text="Entries after those of the root before it.")),
                (
                    "tree",
                    models.CharField(help_text="RFC 6962 hash of the tree over its entries.", max_length=64),
                ),
                (
                    "previous",
                    models.CharField(blank=True, help_text="Hash of the root before it.", max_length=64),
                ),
                ("key_id", models.CharField(help_text="Thumbprint of the key that signed.", max_length=64)),
                (
                    "signature",
                    models.CharField(help_text="ES256 of the root, r and s in hex.", max_length=128),
                ),
            ],
            options={
                "db_table": "credits_root",
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
            name="AccountSalt",
            fields=[
                (
                    "account",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="salt",
                        serialize=False,
                        to="credits.creditaccount",
                    ),
                ),
                ("salt", models.BinaryField()),
            ],
            options={
                "db_table": "credits_accountsalt",
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
            name="ErasedEntry",
            fields=[
                (
                    "entry",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="erased",
                        serialize=False,
                        to="credits.creditentry",
                    ),
                ),
                ("profile_hash", models.CharField(max_length=64)),
                ("reason_hash", models.CharField(max_length=64)),
            ],
            options={
                "db_table": "credits_erasedentry",
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
                        db_collation="C",
                        help_text="Idempotency key, which names the cause.",
                        max_length=255,
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
                    "account",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="holds",
                        to="credits.creditaccount",
                    ),
                ),
                (
                    "entry",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="hold",
                        to="credits.creditentry",
                    ),
                ),
            ],
            options={
                "db_table": "credits_hold",
            },
        ),
        migrations.CreateModel(
            name="RootTree",
            fields=[
                (
                    "root",
                    models.OneToOneField(
                        db_column="number",
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="hashes",
                        serialize=False,
                        to="credits.ledgerroot",
                    ),
                ),
                ("seed", models.BinaryField(help_text="Random; each entry's salt is derived from it.")),
                (
                    "entry_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        help_text="In the order of the leaves.",
                        size=None,
                    ),
                ),
                (
                    "nodes",
                    models.BinaryField(
                        help_text="32 bytes each: the leaves, then level after level up to the root."
                    ),
                ),
            ],
            options={
                "db_table": "credits_roottree",
            },
        ),
        migrations.AddIndex(
            model_name="ledgerroot",
            index=models.Index(fields=["last_entry_id", "number"], name="credits_root_of_entry"),
        ),
        migrations.AddConstraint(
            model_name="ledgerroot",
            constraint=models.CheckConstraint(
                condition=models.Q(("number__gte", 1)), name="credits_root_number_starts_at_1"
            ),
        ),
        migrations.AddConstraint(
            model_name="ledgerroot",
            constraint=models.CheckConstraint(
                condition=models.Q(("entry_count__gte", 0)), name="credits_root_count_not_negative"
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="ledgerroot",
            trigger=pgtrigger.compiler.Trigger(
                name="append_only",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;",
                    hash="16ee1270fbc0268cd876364fd450ec2fd2f6abb2",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_c4b6f",
                    table="credits_root",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="ledgerroot",
            trigger=pgtrigger.compiler.Trigger(
                name="never_emptied",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (left(current_database()::text, 5) <> 'test_')",
                    func="RAISE EXCEPTION 'the list of roots is append-only: % cannot be truncated', TG_TABLE_NAME;",
                    hash="f254b58cd89da5d72e309bf7c616eca7cf8473db",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_never_emptied_f3ba3",
                    table="credits_root",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddIndex(
            model_name="reconciliationrun",
            index=models.Index(fields=["kind", "-started_at"], name="credits_reconciliationrun_new"),
        ),
        migrations.AddConstraint(
            model_name="reconciliationrun",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("finished_at__isnull", True),
                    ("finished_at__gte", models.F("started_at")),
                    _connector="OR",
                ),
                name="credits_reconciliationrun_times_in_order",
            ),
        ),
        migrations.AddConstraint(
            model_name="creditaccount",
            constraint=models.CheckConstraint(
                condition=models.Q(("held__gte", 0)), name="credits_account_held_not_negative"
            ),
        ),
        migrations.AddConstraint(
            model_name="creditaccount",
            constraint=models.CheckConstraint(
                condition=models.Q(("open_holds__gte", 0)), name="credits_account_open_holds_not_negative"
            ),
        ),
        migrations.AddConstraint(
            model_name="creditaccount",
            constraint=models.CheckConstraint(
                condition=models.Q(("version__gte", 0)), name="credits_account_version_not_negative"
            ),
        ),
        migrations.AddConstraint(
            model_name="allowance",
            constraint=models.CheckConstraint(
                condition=models.Q(("credits__gte", 0)), name="credits_allowance_credits_not_negative"
            ),
        ),
        migrations.AddConstraint(
            model_name="allowance",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("ends_at__lte", models.F("resets_at")), ("starts_at__lte", models.F("ends_at"))
                ),
                name="credits_allowance_times_in_order",
            ),
        ),
        migrations.AddIndex(
            model_name="creditentry",
            index=django.contrib.postgres.indexes.BrinIndex(
                autosummarize=True, fields=["created_at"], name="credits_entry_by_time"
            ),
        ),
        migrations.AddIndex(
            model_name="creditentry",
            index=models.Index(
                condition=models.Q(("source", "RELAY_TRANSACTION"), _negated=True),
                fields=["account", "-account_version"],
                name="credits_entry_earnings",
            ),
        ),
        migrations.AddIndex(
            model_name="creditentry",
            index=models.Index(
                condition=models.Q(
                    (
                        "source__in",
                        [
                            "SUBSCRIBED_PAYOUT",
                            "PUSH_ADS",
                            "VIDEO_ADS",
                            "OFFERWALL",
                            "SURVEYS",
                            "EARNING_REVERSAL",
                            "PAYOUT_CLAWBACK",
                        ],
                    )
                ),
                fields=["account", "source"],
                include=("amount",),
                name="credits_entry_proofs",
            ),
        ),
        migrations.AddIndex(
            model_name="creditentry",
            index=models.Index(
                condition=models.Q(
                    (
                        "source__in",
                        [
                            "SUBSCRIBED_PAYOUT",
                            "RELAY_REVERSAL",
                            "EARNING_REVERSAL",
                            "PAYOUT_CLAWBACK",
                            "STAFF_ADJUSTMENT",
                        ],
                    )
                ),
                fields=["source", "-id"],
                name="credits_entry_rare_sources",
            ),
        ),
        migrations.AddIndex(
            model_name="creditentry",
            index=models.Index(
                condition=models.Q(("actor__isnull", False)), fields=["actor"], name="credits_entry_actor"
            ),
        ),
        migrations.AddConstraint(
            model_name="creditentry",
            constraint=models.UniqueConstraint(fields=("key",), name="credits_entry_key"),
        ),
        migrations.AddConstraint(
            model_name="creditentry",
            constraint=models.UniqueConstraint(
                fields=("account", "account_version"), name="credits_entry_account_version"
            ),
        ),
        migrations.AddConstraint(
            model_name="creditentry",
            constraint=models.CheckConstraint(
                condition=models.Q(("amount", 0), _negated=True), name="credits_entry_amount_not_zero"
            ),
        ),
        migrations.AddConstraint(
            model_name="creditentry",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "balance_after",
                        django.db.models.expressions.CombinedExpression(
                            models.F("balance_before"), "+", models.F("amount")
                        ),
                    )
                ),
                name="credits_entry_after_is_before_plus_amount",
            ),
        ),
        migrations.AddConstraint(
            model_name="creditentry",
            constraint=models.CheckConstraint(
                condition=models.Q(("account_version__gte", 1)), name="credits_entry_version_starts_at_1"
            ),
        ),
        migrations.AddConstraint(
            model_name="creditentry",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "source__in",
                        [
                            "SUBSCRIBED_PAYOUT",
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
                        ],
                    )
                ),
                name="credits_entry_source_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="creditentry",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("source", "STAFF_ADJUSTMENT"), _negated=True),
                    models.Q(("reason", ""), _negated=True),
                    _connector="OR",
                ),
                name="credits_entry_adjustment_has_reason",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="creditentry",
            trigger=pgtrigger.compiler.Trigger(
                name="append_only",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;",
                    hash="609ea503ad354a37fcea61f4af3e3b76cc13dd96",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_1a262",
                    table="credits_entry",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="creditentry",
            trigger=pgtrigger.compiler.Trigger(
                name="never_emptied",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (left(current_database()::text, 5) <> 'test_')",
                    func="RAISE EXCEPTION 'the ledger is append-only: % cannot be truncated', TG_TABLE_NAME;",
                    hash="243858a5399fd2a573e9a93d0a3ceb4589e02ba9",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_never_emptied_2146d",
                    table="credits_entry",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddIndex(
            model_name="credithold",
            index=models.Index(
                condition=models.Q(("status", "HELD")), fields=["account"], name="credits_hold_open"
            ),
        ),
        migrations.AddConstraint(
            model_name="credithold",
            constraint=models.UniqueConstraint(fields=("key",), name="credits_hold_key"),
        ),
        migrations.AddConstraint(
            model_name="credithold",
            constraint=models.CheckConstraint(
                condition=models.Q(("amount__gt", 0)), name="credits_hold_amount_positive"
            ),
        ),
        migrations.AddConstraint(
            model_name="credithold",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("captured_amount", None), ("closed_at", None), ("entry", None), ("status", "HELD")
                    ),
                    models.Q(
                        ("captured_amount__gt", 0),
                        ("captured_amount__isnull", False),
                        ("closed_at__isnull", False),
                        ("entry__isnull", False),
                        ("status", "CAPTURED"),
                    ),
                    models.Q(
                        ("captured_amount", None),
                        ("closed_at__isnull", False),
                        ("entry", None),
                        ("status", "RELEASED"),
                    ),
                    _connector="OR",
                ),
                name="credits_hold_status_fits_columns",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="roottree",
            trigger=pgtrigger.compiler.Trigger(
                name="append_only",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;",
                    hash="5619a37db5231153a86781c6b140e5284fbc014b",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_7bcfe",
                    table="credits_roottree",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="roottree",
            trigger=pgtrigger.compiler.Trigger(
                name="never_emptied",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (left(current_database()::text, 5) <> 'test_')",
                    func="RAISE EXCEPTION 'the list of trees is append-only: % cannot be truncated', TG_TABLE_NAME;",
                    hash="873787e9280888675bef7a472b7b2ffadda46dc5",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_never_emptied_83409",
                    table="credits_roottree",
                    when="BEFORE",
                ),
            ),
        ),
    ]
