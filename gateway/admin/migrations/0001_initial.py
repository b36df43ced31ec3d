import django.contrib.admin.models
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations

from gateway.admin.models import INDEXES


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("admin", "0003_logentry_add_action_flag_choices"),
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
        *(migrations.RunSQL(sql, f"DROP INDEX {name}") for name, sql in INDEXES.items()),
    ]
