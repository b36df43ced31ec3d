"""One decision is written once; a row's history and a request's entries are found by an index."""

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations

_INDEXES = {
    "users_staffaction_decision": """
        CREATE UNIQUE INDEX users_staffaction_decision ON django_admin_log
        (substring(change_message from '"decision": "([^"]+)"'))
        WHERE change_message LIKE '%"decision": "%'
    """,
    "users_staffaction_request": """
        CREATE INDEX users_staffaction_request ON django_admin_log
        (substring(change_message from '"requestId": "([^"]+)"'))
    """,
    "users_staffaction_row": """
        CREATE INDEX users_staffaction_row ON django_admin_log (object_id, content_type_id)
    """,
}


class Migration(migrations.Migration):
    dependencies = [
        ("users", "0003_audit_log"),
    ]

    operations = [
        *(migrations.RunSQL(sql, f"DROP INDEX {name}") for name, sql in _INDEXES.items()),
        pgtrigger.migrations.AddTrigger(
            model_name="staffaction",
            trigger=pgtrigger.compiler.Trigger(
                name="never_emptied",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (left(current_database()::text, 5) <> 'test_')",
                    func="RAISE EXCEPTION 'the audit log is append-only: % cannot be truncated', TG_TABLE_NAME;",
                    hash="07d46db6cb4771f9c96247769b95221425a9d88e",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_never_emptied_85bff",
                    table="django_admin_log",
                    when="BEFORE",
                ),
            ),
        ),
    ]
