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
        ("credits", "0001_initial"),
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
                ("name", models.SlugField(help_text="Refusals and exports show this name.", max_length=40)),
                (
                    "position",
                    models.PositiveSmallIntegerField(
                        default=0, help_text="Policies with lower positions are tried first."
                    ),
                ),
                ("is_enabled", models.BooleanField(db_default=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "verbose_name_plural": "policies",
            },
        ),
        migrations.CreateModel(
            name="Member",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("viewer", "Viewer: sees everything, changes nothing"),
                            ("manager", "Manager: also keys and funds"),
                            ("owner", "Owner: also members"),
                        ],
                        max_length=7,
                    ),
                ),
                (
                    "email",
                    models.EmailField(
                        help_text="Address of a member without a profile.", max_length=254, null=True
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="MemberSession",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("token_hash", models.CharField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                (
                    "member",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sessions",
                        to="sponsors.member",
                    ),
                ),
            ],
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
                        help_text='What calls may reach, such as [{"contract": "0x…", "functions": ["0xa9059cbb"]}]. Without functions, calls may reach the whole contract. An empty list allows every call.',
                    ),
                ),
                (
                    "profiles",
                    models.CharField(
                        choices=[
                            ("all", "Every profile"),
                            ("listed", "Listed profiles"),
                            ("new", "Profiles that signed in here first after a date"),
                            ("vouched", "Profiles with a voucher of the sponsor"),
                            ("holding", "Profiles that hold a token"),
                            ("followed", "Profiles that a given profile follows"),
                            ("follower", "Profiles that follow a given profile"),
                            ("verified", "Profiles for whose call the sponsor's verifier answers yes"),
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
                        help_text="For new profiles: accounts opened at this time or later.",
                        null=True,
                    ),
                ),
                (
                    "counterpart",
                    gateway.common.fields.AddressField(
                        blank=True,
                        help_text="The token that profiles hold, or the other profile of a follow.",
                        null=True,
                    ),
                ),
                (
                    "least_balance",
                    gateway.common.fields.Uint256Field(
                        blank=True,
                        help_text="For profiles that hold a token: the lowest balance, in the token's smallest unit.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "gas_price_ceiling_wei",
                    gateway.common.fields.Uint256Field(
                        blank=True, help_text="Maximum gas price of a call, in wei.", null=True
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
                        help_text="Maximum credits for one call.",
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "user_day_credits",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Maximum credits for one user in a UTC day.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "user_credits",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Maximum credits for one user in total.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "user_calls",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Maximum calls of one user in total.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "window_seconds",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Length of a window in seconds, at least 60.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(60)],
                    ),
                ),
                (
                    "window_credits",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Maximum credits in each window.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "campaign_credits",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Maximum credits in total.",
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
                    models.SlugField(help_text="Calls name the sponsor by it.", max_length=40, unique=True),
                ),
                ("name", models.CharField(max_length=80)),
                (
                    "is_frozen",
                    models.BooleanField(
                        db_default=False, help_text="A frozen sponsor pays for no new calls."
                    ),
                ),
                (
                    "alarm_credits",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Members are notified when fewer credits are left. Leave empty for no alarm.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "is_default",
                    models.BooleanField(
                        db_default=False,
                        help_text="The default sponsor pays for calls of users without credits if no other sponsor does.",
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "permissions": [
                    ("freeze_sponsor", "Can freeze sponsors and switch off policies"),
                    ("fund_sponsor", "Can ask for an adjustment of a sponsor's credits"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("is_default", True)),
                        fields=("is_default",),
                        name="sponsors_sponsor_one_default",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RefusalCount",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("rule", models.CharField(help_text="The code of the problem.", max_length=64)),
                ("requests", models.BigIntegerField(default=0)),
                (
                    "sponsor",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="refusals",
                        to="sponsors.sponsor",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="policy",
            name="sponsor",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="policies", to="sponsors.sponsor"
            ),
        ),
        migrations.AddField(
            model_name="member",
            name="sponsor",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="members",
                to="sponsors.sponsor",
            ),
        ),
        migrations.CreateModel(
            name="ApiKey",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(help_text="What the key is used for.", max_length=40)),
                ("key_hash", models.CharField(max_length=64, unique=True)),
                ("hint", models.CharField(help_text="The key's last characters.", max_length=8)),
                (
                    "scopes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=8), size=None
                    ),
                ),
                (
                    "networks",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=43),
                        default=list,
                        help_text="Networks that may use the key. An empty list allows all.",
                        size=None,
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("expires_at", models.DateTimeField(null=True)),
                ("last_used_at", models.DateTimeField(help_text="Recorded to the hour.", null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
                (
                    "sponsor",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="keys",
                        to="sponsors.sponsor",
                    ),
                ),
            ],
            options={
                "verbose_name": "API key",
                "verbose_name_plural": "API keys",
            },
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
                    models.DateTimeField(help_text="The call counts in the day and the window of this time."),
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
                        db_index=False,
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
        migrations.CreateModel(
            name="UsedVoucher",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("voucher_id", gateway.common.fields.HashField()),
                ("signer", gateway.common.fields.AddressField()),
                (
                    "call",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="voucher",
                        to="sponsors.sponsoredcall",
                    ),
                ),
                (
                    "sponsor",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="used_vouchers",
                        to="sponsors.sponsor",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Verifier",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "url",
                    models.CharField(
                        help_text="The https URL to which each question is posted.",
                        max_length=2000,
                        verbose_name="address",
                    ),
                ),
                ("secret", models.TextField(editable=False)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("removed_at", models.DateTimeField(editable=False, null=True)),
                (
                    "sponsor",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="verifiers",
                        to="sponsors.sponsor",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="VoucherSigner",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("address", gateway.common.fields.AddressField()),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("removed_at", models.DateTimeField(editable=False, null=True)),
                (
                    "sponsor",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="signers",
                        to="sponsors.sponsor",
                    ),
                ),
            ],
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
                condition=models.Q(
                    models.Q(
                        ("counterpart__isnull", False), ("least_balance__gte", 1), ("profiles", "holding")
                    ),
                    models.Q(
                        ("counterpart__isnull", False),
                        ("least_balance__isnull", True),
                        ("profiles__in", ("followed", "follower")),
                    ),
                    models.Q(
                        models.Q(("profiles__in", ["holding", "followed", "follower"]), _negated=True),
                        ("counterpart__isnull", True),
                        ("least_balance__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="sponsors_policyversion_counterpart",
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
            model_name="refusalcount",
            constraint=models.UniqueConstraint(
                fields=("sponsor", "day", "rule"), name="sponsors_refusalcount_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="policy",
            constraint=models.UniqueConstraint(fields=("sponsor", "name"), name="sponsors_policy_name"),
        ),
        migrations.AddConstraint(
            model_name="member",
            constraint=models.UniqueConstraint(fields=("sponsor", "user"), name="sponsors_member_once"),
        ),
        migrations.AddConstraint(
            model_name="member",
            constraint=models.UniqueConstraint(fields=("sponsor", "email"), name="sponsors_member_email"),
        ),
        migrations.AddIndex(
            model_name="sponsoredcall",
            index=models.Index(fields=["version", "accepted_at"], name="sponsors_sponsoredcall_by_time"),
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
        migrations.AddConstraint(
            model_name="usedvoucher",
            constraint=models.UniqueConstraint(
                fields=("sponsor", "voucher_id"), name="sponsors_usedvoucher_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="verifier",
            constraint=models.UniqueConstraint(
                condition=models.Q(("removed_at__isnull", True)),
                fields=("sponsor",),
                name="sponsors_verifier_active",
            ),
        ),
        migrations.AddConstraint(
            model_name="vouchersigner",
            constraint=models.UniqueConstraint(
                condition=models.Q(("removed_at__isnull", True)),
                fields=("sponsor", "address"),
                name="sponsors_vouchersigner_active",
            ),
        ),
    ]
