from decimal import Decimal

import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.math
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("rewards", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="DropItem",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "drop_type",
                    models.CharField(
                        choices=[
                            ("EXPERIENCE", "Experience"),
                            ("CREDITS", "Credits"),
                            ("BONUS_PUSH_ADS_CREDITS", "Bonus Push Ads Credits"),
                            ("BONUS_VIDEO_ADS_CREDITS", "Bonus Video Ads Credits"),
                            ("BONUS_OFFERWALL_CREDITS", "Bonus Offerwall Credits"),
                            ("BONUS_SURVEYS_CREDITS", "Bonus Surveys Credits"),
                            ("BONUS_CREDITS_BACK", "Bonus Credits Back"),
                        ],
                        max_length=32,
                    ),
                ),
                (
                    "weight",
                    models.PositiveIntegerField(
                        help_text="Likelihood against the weights of the other items."
                    ),
                ),
                (
                    "value_min",
                    models.DecimalField(
                        decimal_places=4,
                        help_text="Whole experience or credits; of a bonus 0.05 is 5 %.",
                        max_digits=13,
                    ),
                ),
                ("value_max", models.DecimalField(decimal_places=4, max_digits=13)),
                (
                    "minutes",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="How long a bonus lasts; empty for experience and credits.",
                        null=True,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="DropTable",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("version", models.PositiveIntegerField(help_text="Version of the badge's table, from 1.")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "published_at",
                    models.DateTimeField(blank=True, help_text="Empty while it is a draft.", null=True),
                ),
            ],
            options={
                "permissions": [
                    ("publish_droptable", "Can ask that a drop table is published"),
                    ("decide_droptable", "Can decide whether a drop table is published"),
                ],
            },
        ),
        migrations.CreateModel(
            name="DailySeed",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField(unique=True)),
                ("salt", models.BinaryField(max_length=32)),
                ("commitment", models.CharField(max_length=64)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("revealed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "revealed_seed",
                    models.CharField(
                        blank=True, default="", help_text="In hex; empty until it is revealed.", max_length=64
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("revealed_at", None), ("revealed_seed", "")),
                            models.Q(
                                ("revealed_at__isnull", False), models.Q(("revealed_seed", ""), _negated=True)
                            ),
                            _connector="OR",
                        ),
                        name="checkin_dailyseed_revealed_whole",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="CheckIn",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField(help_text="UTC.")),
                (
                    "attempt",
                    models.PositiveSmallIntegerField(
                        help_text="Number of the check-in among the user's of that day, from 1."
                    ),
                ),
                ("experience_only", models.BooleanField(help_text="The user had not paid or earned yet.")),
                ("possible_results", models.JSONField()),
                (
                    "result_place",
                    models.PositiveSmallIntegerField(
                        help_text="Index of the awarded drop among the possible results, from 0."
                    ),
                ),
                ("idempotency_key", models.CharField(blank=True, default="", max_length=128)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="check_ins",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "seed",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="check_ins",
                        to="checkin.dailyseed",
                    ),
                ),
            ],
            options={
                "verbose_name": "check-in",
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="dailyseed",
            trigger=pgtrigger.compiler.Trigger(
                name="promise_stands",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition='WHEN (OLD."day" IS DISTINCT FROM (NEW."day") OR OLD."salt" IS DISTINCT FROM (NEW."salt") OR OLD."commitment" IS DISTINCT FROM (NEW."commitment"))',
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;",
                    hash="d7153f3095345e1def0746edaba4bc6bce6835ad",
                    operation="UPDATE",
                    pgid="pgtrigger_promise_stands_c0738",
                    table="checkin_dailyseed",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="dailyseed",
            trigger=pgtrigger.compiler.Trigger(
                name="never_deleted",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;",
                    hash="4df0405486063b33f962b9e3f281f74c7042a9d6",
                    operation="DELETE",
                    pgid="pgtrigger_never_deleted_76b12",
                    table="checkin_dailyseed",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="dailyseed",
            trigger=pgtrigger.compiler.Trigger(
                name="revealed_once",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition='WHEN (OLD."revealed_at" IS NOT NULL)',
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;",
                    hash="2da834e898e7e8feb174284da5bbd45ac6b8f8f0",
                    operation="UPDATE",
                    pgid="pgtrigger_revealed_once_5f38d",
                    table="checkin_dailyseed",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddField(
            model_name="droptable",
            name="author",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                help_text="The author, who alone may change the draft. Empty for the first tables.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="droptable",
            name="badge",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="drop_tables",
                to="rewards.badge",
            ),
        ),
        migrations.AddField(
            model_name="droptable",
            name="published_by",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                help_text="Who asked for it; the request says who approved.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="dropitem",
            name="table",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="items", to="checkin.droptable"
            ),
        ),
        migrations.AddField(
            model_name="checkin",
            name="permanent_table",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="checkin.droptable",
            ),
        ),
        migrations.AddField(
            model_name="checkin",
            name="subscriber_table",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                help_text="Empty for a user who was not subscribed.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="checkin.droptable",
            ),
        ),
        migrations.AddIndex(
            model_name="droptable",
            index=models.Index(fields=["badge", "-published_at", "-id"], name="checkin_droptable_in_force"),
        ),
        migrations.AddConstraint(
            model_name="droptable",
            constraint=models.UniqueConstraint(fields=("badge", "version"), name="checkin_droptable_version"),
        ),
        migrations.AddConstraint(
            model_name="droptable",
            constraint=models.CheckConstraint(
                condition=models.Q(("published_by", None), ("published_at__isnull", False), _connector="OR"),
                name="checkin_droptable_publisher_of_published",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="droptable",
            trigger=pgtrigger.compiler.Trigger(
                name="published_stays",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition='WHEN (OLD."published_at" IS NOT NULL)',
                    func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;",
                    hash="6d68f1606fdd1e684be5ab32ab26b738d52534ed",
                    operation="DELETE",
                    pgid="pgtrigger_published_stays_235f6",
                    table="checkin_droptable",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="droptable",
            trigger=pgtrigger.compiler.Trigger(
                name="published_never_changes",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (OLD.published_at IS NOT NULL\nAND (NEW.badge_id IS NOT NULL OR to_jsonb(NEW) - 'badge_id' IS DISTINCT FROM to_jsonb(OLD) - 'badge_id'))",
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;",
                    hash="6d91c10cd5e58d54c5c7045dc1cdde2612e848f5",
                    operation="UPDATE",
                    pgid="pgtrigger_published_never_changes_2c004",
                    table="checkin_droptable",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddConstraint(
            model_name="dropitem",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "drop_type__in",
                        [
                            "EXPERIENCE",
                            "CREDITS",
                            "BONUS_PUSH_ADS_CREDITS",
                            "BONUS_VIDEO_ADS_CREDITS",
                            "BONUS_OFFERWALL_CREDITS",
                            "BONUS_SURVEYS_CREDITS",
                            "BONUS_CREDITS_BACK",
                        ],
                    )
                ),
                name="checkin_dropitem_type_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="dropitem",
            constraint=models.CheckConstraint(
                condition=models.Q(("weight__range", (1, 1000000))),
                name="checkin_dropitem_weight_in_range",
                violation_error_message="A weight is between 1 and 1,000,000.",
            ),
        ),
        migrations.AddConstraint(
            model_name="dropitem",
            constraint=models.CheckConstraint(
                condition=models.Q(("value_max__gte", models.F("value_min")), ("value_min__gt", 0)),
                name="checkin_dropitem_values_in_order",
                violation_error_message="The least value is above 0 and not above the largest.",
            ),
        ),
        migrations.AddConstraint(
            model_name="dropitem",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("drop_type__in", ["CREDITS", "EXPERIENCE"]), _negated=True),
                    models.Q(
                        ("minutes", None),
                        ("value_max", django.db.models.functions.math.Floor("value_max")),
                        ("value_min", django.db.models.functions.math.Floor("value_min")),
                    ),
                    _connector="OR",
                ),
                name="checkin_dropitem_amounts_are_whole",
                violation_error_message="Experience and credits are whole and have no minutes.",
            ),
        ),
        migrations.AddConstraint(
            model_name="dropitem",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("drop_type__in", ["CREDITS", "EXPERIENCE"]),
                    models.Q(
                        ("minutes__isnull", False),
                        ("minutes__range", (1, 43200)),
                        ("value_max__lte", Decimal(1)),
                    ),
                    _connector="OR",
                ),
                name="checkin_dropitem_bonuses_are_bounded",
                violation_error_message="A bonus is a fraction up to 1 and lasts 1 minute to 30 days.",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="dropitem",
            trigger=pgtrigger.compiler.Trigger(
                name="published_stays",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\nPERFORM FROM checkin_droptable WHERE id IN (OLD.table_id, NEW.table_id) FOR SHARE;\nIF EXISTS (\n    SELECT FROM checkin_droptable WHERE id IN (OLD.table_id, NEW.table_id) AND published_at IS NOT NULL\n) THEN\n    RAISE EXCEPTION 'the items of a published drop table never change'\n        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'checkin_dropitem_published';\nEND IF;\nRETURN coalesce(NEW, OLD);\n",
                    hash="9cb9e598328767d943407b8b7933c1392e04d99b",
                    operation="INSERT OR UPDATE OR DELETE",
                    pgid="pgtrigger_published_stays_aca79",
                    table="checkin_dropitem",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddConstraint(
            model_name="checkin",
            constraint=models.UniqueConstraint(
                fields=("user", "day", "attempt"), name="checkin_checkin_attempt"
            ),
        ),
        migrations.AddConstraint(
            model_name="checkin",
            constraint=models.UniqueConstraint(
                condition=models.Q(("idempotency_key", ""), _negated=True),
                fields=("user", "idempotency_key"),
                name="checkin_checkin_key",
            ),
        ),
        migrations.AddConstraint(
            model_name="checkin",
            constraint=models.CheckConstraint(
                condition=models.Q(("attempt__gte", 1)), name="checkin_checkin_attempt_from_1"
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="checkin",
            trigger=pgtrigger.compiler.Trigger(
                name="append_only",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;",
                    hash="8c011531db275d193482b3640ff24140155e12cc",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_8425c",
                    table="checkin_checkin",
                    when="BEFORE",
                ),
            ),
        ),
    ]
