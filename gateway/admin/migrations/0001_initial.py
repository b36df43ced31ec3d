import django.contrib.admin.models
import django.db.models.deletion
import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

from gateway.admin.models import INDEXES


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("admin", "0003_logentry_add_action_flag_choices"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="StaffAction",
            fields=[],
            options={
                "verbose_name": "staff action",
                "proxy": True,
                "indexes": [],
                "constraints": [],
            },
            bases=("admin.logentry",),
            managers=[
                ("objects", django.contrib.admin.models.LogEntryManager()),
            ],
        ),
        migrations.CreateModel(
            name="Pause",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(help_text="What is paused or resumed.", max_length=40)),
                ("is_paused", models.BooleanField()),
                ("reason", models.TextField()),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "actor",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="staffaction",
            trigger=pgtrigger.compiler.Trigger(
                name="append_only",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;",
                    hash="0b08a45515fc7ee2f724a322e5f27a0148988d01",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_05c17",
                    table="django_admin_log",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="staffaction",
            trigger=pgtrigger.compiler.Trigger(
                name="never_emptied",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (left(current_database()::text, 5) <> 'test_')",
                    func="RAISE EXCEPTION 'the audit log is append-only: % cannot be truncated', TG_TABLE_NAME;",
                    hash="f7663b402df5aee9abbe9b763f40c285d6642d3a",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_never_emptied_ca178",
                    table="django_admin_log",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddIndex(
            model_name="pause",
            index=models.Index(fields=["name", "-id"], name="pause_newest"),
        ),
        migrations.AddConstraint(
            model_name="pause",
            constraint=models.CheckConstraint(
                condition=models.Q(("reason", ""), _negated=True), name="pause_has_reason"
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="pause",
            trigger=pgtrigger.compiler.Trigger(
                name="append_only",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;",
                    hash="4afb0de1f0a743a3fc6f1acc23a6c28cad6e5820",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_62f6b",
                    table="gateway_admin_pause",
                    when="BEFORE",
                ),
            ),
        ),
        *(migrations.RunSQL(sql, f"DROP INDEX {name}") for name, sql in INDEXES.items()),
    ]
