from decimal import Decimal

import django.contrib.postgres.constraints
import django.contrib.postgres.fields.ranges
import django.db.models.constraints
import django.db.models.deletion
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
            name="CashbackEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "amount",
                    models.BigIntegerField(
                        help_text="In ten-thousandths of a credit; negative if taken back."
                    ),
                ),
                (
                    "credits",
                    models.BigIntegerField(
                        help_text="Whole credits posted to the account with the same key, or 0."
                    ),
                ),
                ("remainder_after", models.SmallIntegerField(help_text="In ten-thousandths of a credit.")),
                (
                    "key",
                    models.CharField(help_text="Idempotency key, which names the cause.", max_length=255),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "verbose_name_plural": "cashback entries",
                "db_table": "rewards_cashback",
            },
        ),
        migrations.CreateModel(
            name="ExperienceEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "track",
                    models.CharField(
                        choices=[("PERMANENT", "Permanent"), ("SUBSCRIBER", "Subscriber")], max_length=16
                    ),
                ),
                (
                    "base",
                    models.BigIntegerField(
                        help_text="Experience before the growth rate is applied; negative if taken back."
                    ),
                ),
                ("amount", models.BigIntegerField(help_text="Experience posted.")),
                ("total_after", models.BigIntegerField()),
                (
                    "key",
                    models.CharField(help_text="Idempotency key, which names the cause.", max_length=255),
                ),
                ("cause", models.CharField(max_length=64)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "verbose_name_plural": "experience entries",
                "db_table": "rewards_experience",
            },
        ),
        migrations.CreateModel(
            name="Modifier",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "modifier_type",
                    models.CharField(
                        choices=[
                            ("BONUS_PUSH_ADS_CREDITS", "Bonus Push Ads Credits"),
                            ("BONUS_VIDEO_ADS_CREDITS", "Bonus Video Ads Credits"),
                            ("BONUS_OFFERWALL_CREDITS", "Bonus Offerwall Credits"),
                            ("BONUS_SURVEYS_CREDITS", "Bonus Surveys Credits"),
                            ("BONUS_CREDITS_BACK", "Bonus Credits Back"),
                        ],
                        max_length=32,
                    ),
                ),
                ("value", models.DecimalField(decimal_places=4, help_text="0.05 is 5 % more.", max_digits=7)),
                (
                    "key",
                    models.CharField(
                        help_text="Idempotency key, which names the cause.", max_length=255, unique=True
                    ),
                ),
                ("reason", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("expires_at", models.DateTimeField()),
            ],
            options={
                "db_table": "rewards_modifier",
                "permissions": [("decide_modifier", "Can decide other people's requests for modifiers")],
            },
        ),
        migrations.CreateModel(
            name="Progress",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "permanent_experience",
                    models.BigIntegerField(
                        db_default=0, default=0, help_text="The sum of the permanent track."
                    ),
                ),
                (
                    "subscriber_experience",
                    models.BigIntegerField(
                        db_default=0, default=0, help_text="The sum of the subscriber track."
                    ),
                ),
                (
                    "cashback_remainder",
                    models.SmallIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Cashback below one credit, in ten-thousandths of a credit.",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "progress",
                "db_table": "rewards_progress",
            },
        ),
        migrations.CreateModel(
            name="Badge",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "track",
                    models.CharField(
                        choices=[("PERMANENT", "Permanent"), ("SUBSCRIBER", "Subscriber")], max_length=16
                    ),
                ),
                ("name", models.CharField(max_length=64)),
                (
                    "exp_lower_bound",
                    models.BigIntegerField(help_text="Experience from which a user has the badge."),
                ),
                (
                    "exp_upper_bound",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Experience from which a user has the next badge; empty for the top badge.",
                        null=True,
                    ),
                ),
                (
                    "exp_growth_rate",
                    models.DecimalField(
                        decimal_places=4,
                        default=Decimal(1),
                        help_text="Multiplies experience gained.",
                        max_digits=7,
                    ),
                ),
                (
                    "bonus_creds_push_ads",
                    models.DecimalField(
                        decimal_places=4,
                        default=Decimal(0),
                        help_text="0.05 is 5 % more credits for push ads.",
                        max_digits=7,
                    ),
                ),
                (
                    "bonus_creds_video_ads",
                    models.DecimalField(
                        decimal_places=4,
                        default=Decimal(0),
                        help_text="0.05 is 5 % more credits for videos.",
                        max_digits=7,
                    ),
                ),
                (
                    "bonus_creds_offerwall",
                    models.DecimalField(
                        decimal_places=4,
                        default=Decimal(0),
                        help_text="0.05 is 5 % more credits for offers.",
                        max_digits=7,
                    ),
                ),
                (
                    "bonus_creds_surveys",
                    models.DecimalField(
                        decimal_places=4,
                        default=Decimal(0),
                        help_text="0.05 is 5 % more credits for surveys.",
                        max_digits=7,
                    ),
                ),
                ("bonus_daily_check_in_attempts", models.PositiveSmallIntegerField(default=0)),
                (
                    "credits_back_percent",
                    models.DecimalField(
                        decimal_places=4,
                        default=Decimal(0),
                        help_text="0.05 gives 5 % of what a relay transaction cost back.",
                        max_digits=7,
                    ),
                ),
                (
                    "acceptable_credit_debt",
                    models.BigIntegerField(default=0, help_text="The debt limit in credits."),
                ),
            ],
            options={
                "db_table": "rewards_badge",
                "ordering": ("track", "exp_lower_bound"),
                "permissions": [("decide_badge", "Can decide other people's requests about badges")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("track__in", ["PERMANENT", "SUBSCRIBER"])),
                        name="rewards_badge_track_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("exp_lower_bound__gte", 0),
                            models.Q(
                                ("exp_upper_bound", None),
                                ("exp_upper_bound__gt", models.F("exp_lower_bound")),
                                _connector="OR",
                            ),
                        ),
                        name="rewards_badge_range_not_empty",
                        violation_error_message="A badge ends above where it begins.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("exp_upper_bound", None),
                            ("exp_upper_bound__lt", 9007199254740991),
                            _connector="OR",
                        ),
                        name="rewards_badge_range_fits_json",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("bonus_creds_offerwall__range", (0, Decimal(10))),
                            ("bonus_creds_push_ads__range", (0, Decimal(10))),
                            ("bonus_creds_surveys__range", (0, Decimal(10))),
                            ("bonus_creds_video_ads__range", (0, Decimal(10))),
                        ),
                        name="rewards_badge_bonuses_in_range",
                        violation_error_message="A bonus is a fraction from 0 to 10.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("credits_back_percent__range", (0, 1))),
                        name="rewards_badge_credits_back_in_range",
                        violation_error_message="Nobody gets more back than was paid.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("exp_growth_rate__gt", 0), ("exp_growth_rate__lte", 10)),
                        name="rewards_badge_growth_in_range",
                        violation_error_message="The growth rate is above 0 and at most 10.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("acceptable_credit_debt__gte", 0)),
                        name="rewards_badge_debt_not_negative",
                    ),
                    django.contrib.postgres.constraints.ExclusionConstraint(
                        condition=models.Q(("track", "PERMANENT")),
                        deferrable=django.db.models.constraints.Deferrable["DEFERRED"],
                        expressions=[
                            (
                                models.Func(
                                    "exp_lower_bound",
                                    "exp_upper_bound",
                                    django.contrib.postgres.fields.ranges.RangeBoundary(),
                                    function="int8range",
                                    output_field=django.contrib.postgres.fields.ranges.BigIntegerRangeField(),
                                ),
                                "&&",
                            )
                        ],
                        name="rewards_badge_permanent_no_overlap",
                        violation_error_message="The range overlaps another badge of the track.",
                    ),
                    django.contrib.postgres.constraints.ExclusionConstraint(
                        condition=models.Q(("track", "SUBSCRIBER")),
                        deferrable=django.db.models.constraints.Deferrable["DEFERRED"],
                        expressions=[
                            (
                                models.Func(
                                    "exp_lower_bound",
                                    "exp_upper_bound",
                                    django.contrib.postgres.fields.ranges.RangeBoundary(),
                                    function="int8range",
                                    output_field=django.contrib.postgres.fields.ranges.BigIntegerRangeField(),
                                ),
                                "&&",
                            )
                        ],
                        name="rewards_badge_subscriber_no_overlap",
                        violation_error_message="The range overlaps another badge of the track.",
                    ),
                ],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="badge",
            trigger=pgtrigger.compiler.Trigger(
                name="levels",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    constraint="CONSTRAINT",
                    func="\nIF EXISTS (\n    SELECT FROM (\n        SELECT exp_lower_bound, exp_upper_bound,\n               lag(exp_upper_bound, 1, 0::bigint) OVER levels AS starts_at,\n               lead(exp_lower_bound) OVER levels AS next_starts_at\n        FROM rewards_badge WHERE track = coalesce(NEW.track, OLD.track)\n        WINDOW levels AS (ORDER BY exp_lower_bound)\n    ) AS level\n    WHERE exp_lower_bound IS DISTINCT FROM starts_at OR exp_upper_bound IS DISTINCT FROM next_starts_at\n) THEN\n    RAISE EXCEPTION 'the levels of % start at 0, have no gap and no top', coalesce(NEW.track, OLD.track)\n        USING ERRCODE = 'check_violation', CONSTRAINT = 'rewards_badge_levels';\nEND IF;\nRETURN NULL;\n",
                    hash="8d80c11f6699469a0318de2cee319ab2d6928635",
                    operation="INSERT OR UPDATE OR DELETE",
                    pgid="pgtrigger_levels_a8fc2",
                    table="rewards_badge",
                    timing="DEFERRABLE INITIALLY DEFERRED",
                    when="AFTER",
                ),
            ),
        ),
        migrations.AddField(
            model_name="modifier",
            name="actor",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                help_text="The member of staff who gave it.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="modifier",
            name="user",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="modifiers",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="progress",
            name="user",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="progress",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="experienceentry",
            name="progress",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="entries",
                to="rewards.progress",
            ),
        ),
        migrations.AddField(
            model_name="cashbackentry",
            name="progress",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="cashback",
                to="rewards.progress",
            ),
        ),
        migrations.AddIndex(
            model_name="modifier",
            index=models.Index(fields=["user", "expires_at"], name="rewards_modifier_user"),
        ),
        migrations.AddIndex(
            model_name="modifier",
            index=models.Index(fields=["expires_at"], name="rewards_modifier_expires"),
        ),
        migrations.AddConstraint(
            model_name="modifier",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "modifier_type__in",
                        [
                            "BONUS_PUSH_ADS_CREDITS",
                            "BONUS_VIDEO_ADS_CREDITS",
                            "BONUS_OFFERWALL_CREDITS",
                            "BONUS_SURVEYS_CREDITS",
                            "BONUS_CREDITS_BACK",
                        ],
                    )
                ),
                name="rewards_modifier_type_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="modifier",
            constraint=models.CheckConstraint(
                condition=models.Q(("value__gt", 0), ("value__lte", Decimal(10))),
                name="rewards_modifier_value_in_range",
            ),
        ),
        migrations.AddConstraint(
            model_name="modifier",
            constraint=models.CheckConstraint(
                condition=models.Q(("expires_at__gt", models.F("created_at"))),
                name="rewards_modifier_expires_after_creation",
            ),
        ),
        migrations.AddConstraint(
            model_name="progress",
            constraint=models.CheckConstraint(
                condition=models.Q(("permanent_experience__gte", 0), ("subscriber_experience__gte", 0)),
                name="rewards_progress_not_negative",
            ),
        ),
        migrations.AddConstraint(
            model_name="progress",
            constraint=models.CheckConstraint(
                condition=models.Q(("cashback_remainder__range", (0, 9999))),
                name="rewards_progress_remainder_is_no_credit",
            ),
        ),
        migrations.AddIndex(
            model_name="experienceentry",
            index=models.Index(fields=["progress", "id"], name="rewards_experience_progress"),
        ),
        migrations.AddConstraint(
            model_name="experienceentry",
            constraint=models.UniqueConstraint(fields=("key",), name="rewards_experience_key"),
        ),
        migrations.AddConstraint(
            model_name="experienceentry",
            constraint=models.CheckConstraint(
                condition=models.Q(("base", 0), _negated=True), name="rewards_experience_base_not_zero"
            ),
        ),
        migrations.AddConstraint(
            model_name="experienceentry",
            constraint=models.CheckConstraint(
                condition=models.Q(("total_after__gte", 0)), name="rewards_experience_not_negative"
            ),
        ),
        migrations.AddConstraint(
            model_name="experienceentry",
            constraint=models.CheckConstraint(
                condition=models.Q(("track__in", ["PERMANENT", "SUBSCRIBER"])),
                name="rewards_experience_track_known",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="experienceentry",
            trigger=pgtrigger.compiler.Trigger(
                name="append_only",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;",
                    hash="df725f59bd6e4223db2137ca6f9aa6eb073b9ebd",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_8f3b0",
                    table="rewards_experience",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddIndex(
            model_name="cashbackentry",
            index=models.Index(fields=["progress", "id"], name="rewards_cashback_progress"),
        ),
        migrations.AddConstraint(
            model_name="cashbackentry",
            constraint=models.UniqueConstraint(fields=("key",), name="rewards_cashback_key"),
        ),
        migrations.AddConstraint(
            model_name="cashbackentry",
            constraint=models.CheckConstraint(
                condition=models.Q(("amount", 0), _negated=True), name="rewards_cashback_not_zero"
            ),
        ),
        migrations.AddConstraint(
            model_name="cashbackentry",
            constraint=models.CheckConstraint(
                condition=models.Q(("remainder_after__range", (0, 9999))),
                name="rewards_cashback_remainder_is_no_credit",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="cashbackentry",
            trigger=pgtrigger.compiler.Trigger(
                name="append_only",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;",
                    hash="bb5aa770ea7ca8e9264a23448c5ffd2c33bf2739",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_34827",
                    table="rewards_cashback",
                    when="BEFORE",
                ),
            ),
        ),
    ]
