import django.contrib.admin.models
import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

# Django's table is not ours to declare indexes on.
_INDEXES = {
    "gateway_admin_staffaction_decision": """
        CREATE UNIQUE INDEX gateway_admin_staffaction_decision ON django_admin_log
        (substring(change_message from '"decision": "([^"]+)"'))
        WHERE change_message LIKE '%"decision": "%'
    """,
    "gateway_admin_staffaction_request": """
        CREATE INDEX gateway_admin_staffaction_request ON django_admin_log
        (substring(change_message from '"requestId": "([^"]+)"'))
    """,
    "gateway_admin_staffaction_row": """
        CREATE INDEX gateway_admin_staffaction_row ON django_admin_log (object_id, content_type_id)
    """,
}


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("contenttypes", "0002_remove_content_type_name"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ApprovalPool",
            fields=[
                ("name", models.CharField(max_length=20, primary_key=True, serialize=False)),
            ],
        ),
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
            name="ApprovalRequest",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=40)),
                (
                    "object_id",
                    models.CharField(
                        blank=True, help_text="The row to change; empty for a new one.", max_length=64
                    ),
                ),
                ("subject", models.CharField(help_text="The subject as text.", max_length=200)),
                (
                    "pool",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="The pool that limits are counted in.",
                        max_length=20,
                    ),
                ),
                ("amount", models.BigIntegerField(default=0, help_text="The amount counted in the pool.")),
                ("payload", models.JSONField()),
                ("changes", models.JSONField(help_text="Old and new values at the time of the request.")),
                ("reason", models.TextField()),
                (
                    "key",
                    models.CharField(
                        help_text="The idempotency key of the request.", max_length=255, unique=True
                    ),
                ),
                (
                    "requested_roles",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=150),
                        help_text="The requester's roles at that time.",
                        size=None,
                    ),
                ),
                (
                    "needs_second_person",
                    models.BooleanField(help_text="Whether the amount was above the limits of one person."),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("waiting", "Waits for a second person"),
                            ("done", "Carried out"),
                            ("rejected", "Rejected"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("decision_reason", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("expires_at", models.DateTimeField(help_text="It can be approved until then.")),
                ("decided_at", models.DateTimeField(null=True)),
                (
                    "made_id",
                    models.CharField(
                        blank=True, default="", help_text="The row that it created, if any.", max_length=64
                    ),
                ),
                (
                    "content_type",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="contenttypes.contenttype",
                    ),
                ),
                (
                    "decided_by",
                    models.ForeignKey(
                        db_index=False,
                        help_text="Who approved or rejected it; empty if no second person was needed.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "made_type",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="contenttypes.contenttype",
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        db_index=False,
                        help_text="The user whose credits it moves.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="approvals",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("-id",),
                "permissions": [("decide_approvalrequest", "Can approve or reject requests of another role")],
            },
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
                ("name", models.CharField(help_text="The part that is paused or resumed.", max_length=40)),
                ("is_paused", models.BooleanField()),
                ("reason", models.TextField(verbose_name="why")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="when"
                    ),
                ),
                (
                    "actor",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="by",
                    ),
                ),
            ],
            options={
                "verbose_name": "pause or resumption",
                "verbose_name_plural": "pauses and resumptions",
            },
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
            model_name="approvalrequest",
            index=models.Index(
                condition=models.Q(("status", "waiting")), fields=["created_at"], name="approval_waiting"
            ),
        ),
        migrations.AddIndex(
            model_name="approvalrequest",
            index=models.Index(
                condition=models.Q(("status", "done")), fields=["pool", "decided_at"], name="approval_taken"
            ),
        ),
        migrations.AddConstraint(
            model_name="approvalrequest",
            constraint=models.CheckConstraint(
                condition=models.Q(("reason", ""), _negated=True), name="approval_has_reason"
            ),
        ),
        migrations.AddConstraint(
            model_name="approvalrequest",
            constraint=models.CheckConstraint(
                condition=models.Q(("amount__gte", 0)), name="approval_amount_not_negative"
            ),
        ),
        migrations.AddConstraint(
            model_name="approvalrequest",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("decided_at", None), ("decided_by", None), ("status", "waiting")),
                    models.Q(
                        ("decided_at__isnull", False),
                        ("status", "done"),
                        models.Q(
                            ("needs_second_person", False), ("decided_by__isnull", False), _connector="OR"
                        ),
                    ),
                    models.Q(
                        ("decided_at__isnull", False), ("decided_by__isnull", False), ("status", "rejected")
                    ),
                    _connector="OR",
                ),
                name="approval_decision_fits_columns",
            ),
        ),
        migrations.AddConstraint(
            model_name="approvalrequest",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("decided_by", None),
                    models.Q(("decided_by", models.F("requested_by")), _negated=True),
                    _connector="OR",
                ),
                name="approval_second_person",
                violation_error_message="A second person has to decide.",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="approvalrequest",
            trigger=pgtrigger.compiler.Trigger(
                name="never_deleted",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;",
                    hash="3c450b82b3a6546dbd62f0311e54d8a860835954",
                    operation="DELETE",
                    pgid="pgtrigger_never_deleted_87b8b",
                    table="gateway_admin_approvalrequest",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="approvalrequest",
            trigger=pgtrigger.compiler.Trigger(
                name="decided_once",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (NOT (OLD.\"status\" = 'waiting'))",
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;",
                    hash="4e4ce214e8949367ecc2d62cb86ca2d5d0f7e093",
                    operation="UPDATE",
                    pgid="pgtrigger_decided_once_b8f0e",
                    table="gateway_admin_approvalrequest",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="approvalrequest",
            trigger=pgtrigger.compiler.Trigger(
                name="asked_for_good",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition='WHEN (OLD."amount" IS DISTINCT FROM (NEW."amount") OR OLD."changes" IS DISTINCT FROM (NEW."changes") OR OLD."content_type_id" IS DISTINCT FROM (NEW."content_type_id") OR OLD."created_at" IS DISTINCT FROM (NEW."created_at") OR OLD."expires_at" IS DISTINCT FROM (NEW."expires_at") OR OLD."key" IS DISTINCT FROM (NEW."key") OR OLD."kind" IS DISTINCT FROM (NEW."kind") OR OLD."needs_second_person" IS DISTINCT FROM (NEW."needs_second_person") OR OLD."object_id" IS DISTINCT FROM (NEW."object_id") OR OLD."payload" IS DISTINCT FROM (NEW."payload") OR OLD."person_id" IS DISTINCT FROM (NEW."person_id") OR OLD."pool" IS DISTINCT FROM (NEW."pool") OR OLD."reason" IS DISTINCT FROM (NEW."reason") OR OLD."requested_by_id" IS DISTINCT FROM (NEW."requested_by_id") OR OLD."requested_roles" IS DISTINCT FROM (NEW."requested_roles"))',
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;",
                    hash="c00a6a60527522e05593f4f2d1c1b00eecb2adfc",
                    operation="UPDATE",
                    pgid="pgtrigger_asked_for_good_2dc05",
                    table="gateway_admin_approvalrequest",
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
        *(migrations.RunSQL(sql, f"DROP INDEX {name}") for name, sql in _INDEXES.items()),
    ]
