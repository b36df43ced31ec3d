import uuid

import django.contrib.auth.models
import django.contrib.auth.validators
import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
import django.utils.timezone
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

import gateway.common.fields


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        migrations.CreateModel(
            name="IssuerKeySet",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("url", models.URLField(max_length=500, unique=True)),
                ("keys", models.JSONField()),
                ("fetched_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="User",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("password", models.CharField(max_length=128, verbose_name="password")),
                ("last_login", models.DateTimeField(blank=True, null=True, verbose_name="last login")),
                (
                    "is_superuser",
                    models.BooleanField(
                        default=False,
                        help_text="Designates that this user has all permissions without explicitly assigning them.",
                        verbose_name="superuser status",
                    ),
                ),
                (
                    "username",
                    models.CharField(
                        error_messages={"unique": "A user with that username already exists."},
                        help_text="Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.",
                        max_length=150,
                        unique=True,
                        validators=[django.contrib.auth.validators.UnicodeUsernameValidator()],
                        verbose_name="username",
                    ),
                ),
                ("first_name", models.CharField(blank=True, max_length=150, verbose_name="first name")),
                ("last_name", models.CharField(blank=True, max_length=150, verbose_name="last name")),
                ("email", models.EmailField(blank=True, max_length=254, verbose_name="email address")),
                (
                    "is_staff",
                    models.BooleanField(
                        default=False,
                        help_text="Designates whether the user can log into this admin site.",
                        verbose_name="staff status",
                    ),
                ),
                (
                    "is_active",
                    models.BooleanField(
                        default=True,
                        help_text="Designates whether this user should be treated as active. Unselect this instead of deleting accounts.",
                        verbose_name="active",
                    ),
                ),
                (
                    "date_joined",
                    models.DateTimeField(default=django.utils.timezone.now, verbose_name="date joined"),
                ),
                ("profile_address", gateway.common.fields.AddressField(blank=True, null=True, unique=True)),
                ("is_member", models.BooleanField(db_default=False, default=False, editable=False)),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="The groups this user belongs to. A user will get all permissions granted to each of their groups.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.group",
                        verbose_name="groups",
                    ),
                ),
                (
                    "user_permissions",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Specific permissions for this user.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.permission",
                        verbose_name="user permissions",
                    ),
                ),
            ],
            options={
                "verbose_name": "user",
                "verbose_name_plural": "users",
                "permissions": [
                    ("manage_staff", "Can request staff accounts, roles and credential resets"),
                    ("decide_staff", "Can decide other people's requests about staff accounts"),
                ],
                "abstract": False,
            },
            managers=[
                ("objects", django.contrib.auth.models.UserManager()),
            ],
        ),
        migrations.CreateModel(
            name="AccountDeletion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("requested", "Requested: subscription and customer at Stripe are being deleted"),
                            ("billing-ended", "Deleted at Stripe; erased once all calls have ended"),
                            ("erased", "Erased"),
                        ],
                        default="requested",
                        max_length=16,
                    ),
                ),
                (
                    "waits_for",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="What it waited for at the last attempt.",
                        max_length=200,
                    ),
                ),
                ("requested_at", models.DateTimeField()),
                ("billing_ended_at", models.DateTimeField(null=True)),
                ("erased_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="deletion",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Invitation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("link_hash", models.CharField(blank=True, default="", max_length=64)),
                ("code_hash", models.CharField(max_length=128)),
                ("failures", models.PositiveSmallIntegerField(default=0)),
                ("expires_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(null=True)),
                (
                    "approved_by",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="invitation",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Note",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("text", models.TextField()),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "author",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="notes",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("-pk",),
                "default_permissions": ("add", "view"),
            },
        ),
        migrations.CreateModel(
            name="Phone",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(help_text="The human-readable name of this device.", max_length=64),
                ),
                ("confirmed", models.BooleanField(default=True, help_text="Is this device ready for use?")),
                (
                    "throttling_failure_timestamp",
                    models.DateTimeField(
                        blank=True,
                        default=None,
                        help_text="A timestamp of the last failed verification attempt. Null if last attempt succeeded.",
                        null=True,
                    ),
                ),
                (
                    "throttling_failure_count",
                    models.PositiveIntegerField(default=0, help_text="Number of successive failed attempts."),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        auto_now_add=True,
                        help_text="The date and time when this device was initially created in the system.",
                        null=True,
                    ),
                ),
                (
                    "last_used_at",
                    models.DateTimeField(
                        blank=True, help_text="The most recent date and time this device was used.", null=True
                    ),
                ),
                ("sealed_key", models.TextField()),
                ("drift", models.SmallIntegerField(default=0)),
                ("last_step", models.BigIntegerField(default=-1)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "second factor",
            },
        ),
        migrations.CreateModel(
            name="ProfileCard",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(blank=True, default="", max_length=80)),
                ("picture", models.BinaryField(default=bytes)),
                ("picture_type", models.CharField(blank=True, default="", max_length=10)),
                ("refreshed_at", models.DateTimeField()),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="card",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="RecoveryCodes",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(help_text="The human-readable name of this device.", max_length=64),
                ),
                ("confirmed", models.BooleanField(default=True, help_text="Is this device ready for use?")),
                (
                    "throttling_failure_timestamp",
                    models.DateTimeField(
                        blank=True,
                        default=None,
                        help_text="A timestamp of the last failed verification attempt. Null if last attempt succeeded.",
                        null=True,
                    ),
                ),
                (
                    "throttling_failure_count",
                    models.PositiveIntegerField(default=0, help_text="Number of successive failed attempts."),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        auto_now_add=True,
                        help_text="The date and time when this device was initially created in the system.",
                        null=True,
                    ),
                ),
                (
                    "last_used_at",
                    models.DateTimeField(
                        blank=True, help_text="The most recent date and time this device was used.", null=True
                    ),
                ),
                (
                    "hashes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64), default=list, size=None
                    ),
                ),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="SignInChallenge",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("nonce", models.CharField(max_length=32, unique=True)),
                ("profile_address", gateway.common.fields.AddressField()),
                ("message", models.TextField()),
                ("client", models.CharField(max_length=64)),
                ("site", models.CharField(db_default="", max_length=64)),
                ("issued_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("expires_at", models.DateTimeField(db_index=True)),
                ("consumed_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["profile_address", "-issued_at"], name="signinchallenge_newest_of"),
                    models.Index(fields=["client", "-issued_at"], name="signinchallenge_newest_by"),
                ],
            },
        ),
        migrations.CreateModel(
            name="SignInSession",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("controller_address", gateway.common.fields.AddressField()),
                ("origin", models.CharField(blank=True, db_default="", default="", max_length=200)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("refreshed_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("expires_at", models.DateTimeField(db_index=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                (
                    "revoked_reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("signed-out", "signed out"),
                            ("token-reused", "refresh token used twice"),
                            ("controller-revoked", "controller lost SIGN"),
                            ("staff", "ended by staff"),
                            ("deleted", "account deleted"),
                        ],
                        default="",
                        max_length=20,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sign_in_sessions",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "sign-in session",
                "permissions": [("revoke_signinsession", "Can end a session")],
            },
        ),
        migrations.CreateModel(
            name="RefreshToken",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("token_hash", models.CharField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("used_at", models.DateTimeField(null=True)),
                (
                    "parent",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="child",
                        to="users.refreshtoken",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="refresh_tokens",
                        to="users.signinsession",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="TrustedImplementation",
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
                        choices=[("profile", "Profile"), ("key-manager", "Key Manager")], max_length=12
                    ),
                ),
                ("name", models.CharField(help_text="Name of the release, shown to staff.", max_length=80)),
                ("address", gateway.common.fields.AddressField(blank=True, null=True)),
                ("code_hash", gateway.common.fields.HashField(blank=True, null=True)),
                ("is_active", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "permissions": [
                    ("decide_trustedimplementation", "Can decide other people's requests about trusted code")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("address__isnull", False), ("code_hash__isnull", True)),
                            models.Q(("address__isnull", True), ("code_hash__isnull", False)),
                            _connector="OR",
                        ),
                        name="trustedimplementation_address_or_hash",
                    ),
                    models.UniqueConstraint(
                        fields=("kind", "address"), name="trustedimplementation_kind_address"
                    ),
                    models.UniqueConstraint(
                        fields=("kind", "code_hash"), name="trustedimplementation_kind_code_hash"
                    ),
                ],
            },
        ),
        migrations.AddIndex(
            model_name="user",
            index=models.Index(
                django.contrib.postgres.indexes.OpClass(
                    django.db.models.functions.text.Lower("profile_address"), "text_pattern_ops"
                ),
                name="users_user_address_begin",
            ),
        ),
        migrations.AddIndex(
            model_name="user",
            index=models.Index(
                django.contrib.postgres.indexes.OpClass(
                    django.db.models.functions.text.Reverse(
                        django.db.models.functions.text.Lower("profile_address")
                    ),
                    "text_pattern_ops",
                ),
                name="users_user_address_end",
            ),
        ),
        migrations.AddIndex(
            model_name="user",
            index=models.Index(
                condition=models.Q(("is_staff", True)), fields=["username"], name="users_user_staff"
            ),
        ),
        migrations.AddConstraint(
            model_name="user",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("is_member", False),
                    models.Q(("is_staff", False), ("is_superuser", False), ("profile_address", None)),
                    _connector="OR",
                ),
                name="users_user_member_alone",
            ),
        ),
        migrations.AddIndex(
            model_name="accountdeletion",
            index=models.Index(
                condition=models.Q(("status", "erased"), _negated=True),
                fields=["requested_at"],
                name="accountdeletion_unfinished",
            ),
        ),
        migrations.AddConstraint(
            model_name="accountdeletion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("billing_ended_at", None), ("erased_at", None), ("status", "requested")),
                    models.Q(
                        ("billing_ended_at__isnull", False), ("erased_at", None), ("status", "billing-ended")
                    ),
                    models.Q(
                        ("billing_ended_at__isnull", False),
                        ("erased_at__isnull", False),
                        ("status", "erased"),
                    ),
                    _connector="OR",
                ),
                name="accountdeletion_status_fits_times",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="accountdeletion",
            trigger=pgtrigger.compiler.Trigger(
                name="erased_by_the_owner",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (NEW.\"status\" = 'erased')",
                    declare="DECLARE owner oid;",
                    func="\n                    SELECT relowner INTO owner FROM pg_class WHERE oid = TG_RELID;\n                    IF NOT pg_has_role(current_user, owner, 'USAGE') THEN\n                        RAISE insufficient_privilege USING MESSAGE = 'only the owner of the tables erases an account';\n                    END IF;\n                    RETURN NEW;\n                ",
                    hash="a224b50e44a134d9c3a2f6a90ee8c4a08aa922b0",
                    operation="INSERT OR UPDATE",
                    pgid="pgtrigger_erased_by_the_owner_1bf00",
                    table="users_accountdeletion",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddConstraint(
            model_name="note",
            constraint=models.CheckConstraint(
                condition=models.Q(("text", ""), _negated=True), name="note_has_text"
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="note",
            trigger=pgtrigger.compiler.Trigger(
                name="append_only",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;",
                    hash="9cea07a8370810430dc76d1a8a81208a04a84cd0",
                    operation="UPDATE",
                    pgid="pgtrigger_append_only_d02ca",
                    table="users_note",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddIndex(
            model_name="profilecard",
            index=models.Index(
                django.contrib.postgres.indexes.OpClass(
                    django.db.models.functions.text.Lower("name"), "text_pattern_ops"
                ),
                name="profilecard_name_begin",
            ),
        ),
        migrations.AddConstraint(
            model_name="signinsession",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("revoked_at", None), ("revoked_reason", "")),
                    models.Q(("revoked_at__isnull", False), models.Q(("revoked_reason", ""), _negated=True)),
                    _connector="OR",
                ),
                name="signinsession_revoked_with_reason",
            ),
        ),
    ]
