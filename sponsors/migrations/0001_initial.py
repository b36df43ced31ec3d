import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

import gateway.common.fields


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("credits", "0009_indexes_of_debts"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Policy",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.SlugField(help_text="Refusals and exports name the policy by it.", max_length=40),
                ),
                (
                    "position",
                    models.PositiveSmallIntegerField(default=0, help_text="Lower positions are asked first."),
                ),
                ("is_enabled", models.BooleanField(db_default=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "verbose_name_plural": "policies",
            },
        ),
        migrations.CreateModel(
            name="Sponsor",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "slug",
                    models.SlugField(
                        help_text="The name by which calls choose it.", max_length=40, unique=True
                    ),
                ),
                ("name", models.CharField(max_length=80)),
                (
                    "is_frozen",
                    models.BooleanField(db_default=False, help_text="A frozen sponsor pays for no new call."),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "permissions": [
                    ("freeze_sponsor", "Can freeze sponsors and switch off policies"),
                    ("fund_sponsor", "Can ask for an adjustment of a sponsor's credits"),
                ],
            },
        ),
        migrations.CreateModel(
            name="PolicyVersion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("starts_at", models.DateTimeField(blank=True, null=True)),
                ("ends_at", models.DateTimeField(blank=True, null=True)),
                (
                    "targets",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text='What calls may reach, such as [{"contract": "0x…", "functions": ["0xa9059cbb"]}]. Without functions all of the contract; an empty list allows every call.',
                    ),
                ),
                (
                    "profiles",
                    models.CharField(
                        choices=[
                            ("all", "Every profile"),
                            ("listed", "Listed profiles"),
                            ("new", "Profiles that signed in here first after a date"),
                        ],
                        default="all",
                        max_length=8,
                    ),
                ),
                (
                    "listed",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=gateway.common.fields.AddressField(),
                        blank=True,
                        default=list,
                        help_text="The listed profiles.",
                        size=None,
                    ),
                ),
                (
                    "new_since",
                    models.DateTimeField(
                        blank=True,
                        help_text="For new profiles: their account here began at this time or later.",
                        null=True,
                    ),
                ),
                (
                    "gas_price_ceiling_wei",
                    gateway.common.fields.Uint256Field(
                        blank=True,
                        help_text="The highest gas price of a call that is paid, in wei.",
                        null=True,
                    ),
                ),
                (
                    "share_percent",
                    models.PositiveSmallIntegerField(
                        default=100,
                        help_text="The sponsor's part of each call's cost; the user pays the rest.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(100),
                        ],
                    ),
                ),
                (
                    "call_credits",
                    models.BigIntegerField(
                        help_text="Credits of one call, at most.",
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "user_day_credits",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Credits of a user in a UTC day, at most.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "user_credits",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Credits of a user in all, at most.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "user_calls",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Calls of a user in all, at most.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "window_seconds",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="How long a window is, from 60 seconds.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(60)],
                    ),
                ),
                (
                    "window_credits",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Credits in each window, at most.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "campaign_credits",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Credits in all, at most.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "policy",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="versions",
                        to="sponsors.policy",
                    ),
                ),
            ],
            options={
                "permissions": [
                    ("decide_policyversion", "Can decide other people's requests for versions of policies")
                ],
            },
        ),
        migrations.AddField(
            model_name="policy",
            name="sponsor",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="policies", to="sponsors.sponsor"
            ),
        ),
        migrations.CreateModel(
            name="SponsoredCall",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("counted_credits", models.BigIntegerField()),
                ("counted_calls", models.PositiveSmallIntegerField(default=1)),
                (
                    "accepted_at",
                    models.DateTimeField(help_text="Decides the day and the window that it counts in."),
                ),
                (
                    "hold",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="sponsored",
                        to="credits.credithold",
                    ),
                ),
                (
                    "sponsor_hold",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="sponsors",
                        to="credits.credithold",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="calls",
                        to="sponsors.policyversion",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Usage",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "scope",
                    models.CharField(
                        choices=[
                            ("user-day", "User Day"),
                            ("user", "User"),
                            ("window", "Window"),
                            ("campaign", "Campaign"),
                        ],
                        max_length=8,
                    ),
                ),
                (
                    "user_number",
                    models.BigIntegerField(default=0, help_text="The user's id; 0 counts all users."),
                ),
                (
                    "begins",
                    models.DateTimeField(
                        help_text="When the day or window begins; 1970-01-01 counts all time."
                    ),
                ),
                ("credits", models.BigIntegerField(default=0)),
                ("calls", models.BigIntegerField(default=0)),
                (
                    "policy",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="usage",
                        to="sponsors.policy",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "usage",
            },
        ),
        migrations.AddConstraint(
            model_name="policyversion",
            constraint=models.UniqueConstraint(
                fields=("policy", "number"), name="sponsors_policyversion_number"
            ),
        ),
        migrations.AddConstraint(
            model_name="policyversion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("new_since__isnull", False), ("profiles", "new")),
                    models.Q(models.Q(("profiles", "new"), _negated=True), ("new_since__isnull", True)),
                    _connector="OR",
                ),
                name="sponsors_policyversion_since",
            ),
        ),
        migrations.AddConstraint(
            model_name="policyversion",
            constraint=models.CheckConstraint(
                condition=models.Q(("share_percent__gte", 1), ("share_percent__lte", 100)),
                name="sponsors_policyversion_share",
            ),
        ),
        migrations.AddConstraint(
            model_name="policyversion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("window_credits__isnull", True), ("window_seconds__isnull", True)),
                    models.Q(("window_credits__isnull", False), ("window_seconds__gte", 60)),
                    _connector="OR",
                ),
                name="sponsors_policyversion_window_whole",
            ),
        ),
        migrations.AddConstraint(
            model_name="policyversion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("call_credits__gte", 1),
                    ("campaign_credits__gte", 1),
                    ("user_calls__gte", 1),
                    ("user_credits__gte", 1),
                    ("user_day_credits__gte", 1),
                    ("window_credits__gte", 1),
                ),
                name="sponsors_policyversion_limits_positive",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="policyversion",
            trigger=pgtrigger.compiler.Trigger(
                name="append_only",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;",
                    hash="11b5b1b4af45e003c4f63bb77970a4c7667bd06f",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_d843e",
                    table="sponsors_policyversion",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddConstraint(
            model_name="policy",
            constraint=models.UniqueConstraint(fields=("sponsor", "name"), name="sponsors_policy_name"),
        ),
        migrations.AddConstraint(
            model_name="usage",
            constraint=models.UniqueConstraint(
                fields=("policy", "scope", "user_number", "begins"), name="sponsors_usage_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="usage",
            constraint=models.CheckConstraint(
                condition=models.Q(("calls__gte", 0), ("credits__gte", 0)), name="sponsors_usage_not_negative"
            ),
        ),
    ]
