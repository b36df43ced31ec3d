import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.expressions
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("credits", "0001_initial"),
        ("sponsors", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="creditaccount",
            name="sponsor",
            field=models.OneToOneField(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="credit_account",
                to="sponsors.sponsor",
            ),
        ),
        migrations.AddField(
            model_name="creditaccount",
            name="user",
            field=models.OneToOneField(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="credit_account",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="creditentry",
            name="account",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="entries",
                to="credits.creditaccount",
            ),
        ),
        migrations.AddField(
            model_name="creditentry",
            name="actor",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                help_text="The member of staff who adjusted.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="credithold",
            name="account",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="holds",
                to="credits.creditaccount",
            ),
        ),
        migrations.AddField(
            model_name="credithold",
            name="entry",
            field=models.OneToOneField(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="hold",
                to="credits.creditentry",
            ),
        ),
        migrations.AddField(
            model_name="expiringlot",
            name="entry",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.PROTECT, related_name="expiry", to="credits.creditentry"
            ),
        ),
        migrations.AddConstraint(
            model_name="expiryrule",
            constraint=models.CheckConstraint(
                condition=models.Q(("days", None), ("days__gte", 30), _connector="OR"),
                name="credits_expiryrule_days",
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
            model_name="creditaccount",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("sponsor__isnull", True), ("user__isnull", False)),
                    models.Q(("sponsor__isnull", False), ("user__isnull", True)),
                    _connector="OR",
                ),
                name="credits_account_one_owner",
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
                    ("source__in", ["RELAY_TRANSACTION", "CREDITS_BACK", "CHECK_IN"]), _negated=True
                ),
                fields=["account", "-account_version"],
                name="credits_entry_timeline",
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
                            "CREDIT_PURCHASE",
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
                name="credits_entry_proving",
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
                            "CREDIT_PURCHASE",
                            "RELAY_REVERSAL",
                            "EARNING_REVERSAL",
                            "PAYOUT_CLAWBACK",
                            "STAFF_ADJUSTMENT",
                        ],
                    )
                ),
                fields=["source", "-id"],
                name="credits_entry_finance",
            ),
        ),
        migrations.AddIndex(
            model_name="creditentry",
            index=models.Index(
                condition=models.Q(("actor__isnull", False)), fields=["actor"], name="credits_entry_actor"
            ),
        ),
        migrations.AddIndex(
            model_name="creditentry",
            index=models.Index(
                condition=models.Q(("source", "DEBT_TRANSFER")), fields=["-id"], name="credits_entry_debts"
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
        migrations.AddIndex(
            model_name="credithold",
            index=models.Index(
                condition=models.Q(("debt__gt", 0)), fields=["debt_day"], name="credits_hold_debt_of_day"
            ),
        ),
        migrations.AddConstraint(
            model_name="credithold",
            constraint=models.UniqueConstraint(fields=("key",), name="credits_hold_key"),
        ),
        migrations.AddConstraint(
            model_name="credithold",
            constraint=models.CheckConstraint(
                condition=models.Q(("amount__gte", 0)), name="credits_hold_amount_not_negative"
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
        migrations.AddIndex(
            model_name="debtor",
            index=models.Index(fields=["digest"], name="credits_debtor_digest"),
        ),
    ]
