import uuid

import django.contrib.postgres.fields
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("sponsors", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Cursor",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("source", models.CharField(max_length=20, unique=True)),
                ("read_until", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="CreditLevel",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("enough", "Enough"), ("low", "Low"), ("depleted", "Depleted")],
                        default="enough",
                        max_length=8,
                    ),
                ),
                ("balance", models.BigIntegerField(default=0, help_text="Credits at which the state began.")),
                (
                    "crossings",
                    models.PositiveIntegerField(default=0, help_text="Events so far; numbers them."),
                ),
                (
                    "use",
                    models.BigIntegerField(
                        default=0, help_text="Credits charged per day of the last 14 days."
                    ),
                ),
                ("use_read_at", models.DateTimeField()),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Endpoint",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        help_text="Name of the wallet app, shown to staff.", max_length=80, unique=True
                    ),
                ),
                (
                    "url",
                    models.CharField(
                        help_text="The https URL to which messages are posted.",
                        max_length=2000,
                        verbose_name="address",
                    ),
                ),
                (
                    "origins",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=200),
                        help_text="The app's origins, such as https://wallet.example. It receives events of users who signed in there.",
                        size=None,
                    ),
                ),
                (
                    "event_types",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(
                            choices=[
                                ("call.accepted", "call.accepted"),
                                ("call.settled", "call.settled"),
                                ("call.reopened", "call.reopened"),
                                ("credits.posted", "credits.posted"),
                                ("credits.low", "credits.low"),
                                ("credits.depleted", "credits.depleted"),
                                ("credits.recovered", "credits.recovered"),
                                ("credits.expiring", "credits.expiring"),
                                ("earning.held", "earning.held"),
                                ("earning.released", "earning.released"),
                                ("earning.reversed", "earning.reversed"),
                                ("credits.top-up", "credits.top-up"),
                                ("subscription.changed", "subscription.changed"),
                                ("sponsor.low", "sponsor.low"),
                                ("sponsor.recovered", "sponsor.recovered"),
                            ],
                            max_length=40,
                        ),
                        help_text="The events it receives.",
                        size=None,
                    ),
                ),
                ("current_secret", models.TextField(editable=False)),
                ("previous_secret", models.TextField(blank=True, default="", editable=False)),
                ("enabled_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("disabled_at", models.DateTimeField(editable=False, null=True)),
                (
                    "disabled_by",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("staff", "staff"),
                            ("gone", "the receiver, which answered 410"),
                            ("failing", "failing for days"),
                            ("sponsor", "its sponsor, who has deleted it"),
                        ],
                        default="",
                        editable=False,
                        max_length=8,
                    ),
                ),
                ("failing_since", models.DateTimeField(editable=False, null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                (
                    "sponsor",
                    models.ForeignKey(
                        db_index=False,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="endpoints",
                        to="sponsors.sponsor",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Message",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("event_id", models.UUIDField(default=uuid.uuid4, unique=True)),
                (
                    "type",
                    models.CharField(
                        choices=[
                            ("call.accepted", "call.accepted"),
                            ("call.settled", "call.settled"),
                            ("call.reopened", "call.reopened"),
                            ("credits.posted", "credits.posted"),
                            ("credits.low", "credits.low"),
                            ("credits.depleted", "credits.depleted"),
                            ("credits.recovered", "credits.recovered"),
                            ("credits.expiring", "credits.expiring"),
                            ("earning.held", "earning.held"),
                            ("earning.released", "earning.released"),
                            ("earning.reversed", "earning.reversed"),
                            ("credits.top-up", "credits.top-up"),
                            ("subscription.changed", "subscription.changed"),
                            ("sponsor.low", "sponsor.low"),
                            ("sponsor.recovered", "sponsor.recovered"),
                            ("sponsor.posted", "sponsor.posted"),
                            ("sponsor.call-settled", "sponsor.call-settled"),
                            ("sponsor.call-reopened", "sponsor.call-reopened"),
                            ("webhook.test", "webhook.test"),
                        ],
                        max_length=40,
                    ),
                ),
                (
                    "key",
                    models.CharField(help_text="Names the event; an endpoint gets it once.", max_length=100),
                ),
                ("ordering_key", models.CharField(max_length=100)),
                ("body", models.TextField()),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("delivered", "Delivered"),
                            ("given-up", "given up"),
                        ],
                        default="waiting",
                        max_length=9,
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("next_attempt_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("finished_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "endpoint",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="messages",
                        to="webhooks.endpoint",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "permissions": [("resend_message", "Can send a message again")],
            },
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("started_at", models.DateTimeField()),
                ("milliseconds", models.PositiveIntegerField()),
                ("response_status", models.PositiveSmallIntegerField(null=True)),
                (
                    "response",
                    models.TextField(blank=True, default="", help_text="The beginning of the response."),
                ),
                ("error", models.TextField(blank=True, default="")),
                (
                    "message",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="webhooks.message",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "deliveries",
            },
        ),
        migrations.CreateModel(
            name="Notice",
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
                        choices=[
                            ("confirm", "question whether the address is right"),
                            ("credits.low", "credits are low"),
                            ("credits.depleted", "credits are used up"),
                            ("credits.recovered", "credits are enough again"),
                            ("credits.expiring", "credits expire soon"),
                            ("sponsor.low", "a sponsor's credits are low"),
                            ("sponsor.recovered", "a sponsor's credits are enough again"),
                        ],
                        max_length=20,
                    ),
                ),
                (
                    "key",
                    models.CharField(
                        help_text="Names the event; its person gets it once.", max_length=100, unique=True
                    ),
                ),
                ("data", models.JSONField(default=dict)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("delivered", "Delivered"),
                            ("given-up", "given up"),
                        ],
                        default="waiting",
                        max_length=9,
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("next_attempt_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("finished_at", models.DateTimeField(null=True)),
                ("error", models.TextField(blank=True, default="", help_text="Of the last attempt.")),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="NoticeAddress",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("email", models.EmailField(max_length=254)),
                ("language", models.CharField(max_length=16)),
                ("confirmed_at", models.DateTimeField(null=True)),
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
                "verbose_name_plural": "notice addresses",
            },
        ),
        migrations.CreateModel(
            name="SponsorLevel",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("is_low", models.BooleanField(default=False)),
                (
                    "crossings",
                    models.PositiveIntegerField(default=0, help_text="Events so far; numbers them."),
                ),
                (
                    "sponsor",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="level",
                        to="sponsors.sponsor",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Subject",
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
                        choices=[
                            ("call", "Call"),
                            ("sponsored", "Sponsored"),
                            ("subscription", "Subscription"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "row_id",
                    models.BigIntegerField(
                        help_text="Id of the relay transaction, sponsored call or subscription."
                    ),
                ),
                ("is_open", models.BooleanField(default=True)),
                ("state", models.JSONField(default=dict)),
                ("changed_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "endpoint",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="subjects",
                        to="webhooks.endpoint",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="endpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("disabled_at", None), ("disabled_by", "")),
                    models.Q(("disabled_at__isnull", False), models.Q(("disabled_by", ""), _negated=True)),
                    _connector="OR",
                ),
                name="endpoint_disabled_by_somebody",
            ),
        ),
        migrations.AddConstraint(
            model_name="endpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(("current_secret", ""), _negated=True), name="endpoint_has_secret"
            ),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                condition=models.Q(("status", "waiting")),
                fields=["next_attempt_at"],
                name="webhooks_message_due",
            ),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                condition=models.Q(("status", "waiting")),
                fields=["endpoint", "ordering_key", "id"],
                name="webhooks_message_order",
            ),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                condition=models.Q(("status", "given-up")),
                fields=["endpoint", "finished_at"],
                name="webhooks_message_given_up",
            ),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(fields=["finished_at"], name="webhooks_message_finished"),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(fields=["endpoint", "-id"], name="webhooks_message_newest"),
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.UniqueConstraint(fields=("endpoint", "key"), name="webhooks_message_once"),
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("finished_at", None), ("status", "waiting")),
                    models.Q(models.Q(("status", "waiting"), _negated=True), ("finished_at__isnull", False)),
                    _connector="OR",
                ),
                name="webhooks_message_finished_has_time",
            ),
        ),
        migrations.AddIndex(
            model_name="notice",
            index=models.Index(
                condition=models.Q(("status", "waiting")),
                fields=["next_attempt_at"],
                name="webhooks_notice_due",
            ),
        ),
        migrations.AddIndex(
            model_name="notice",
            index=models.Index(fields=["finished_at"], name="webhooks_notice_finished"),
        ),
        migrations.AddIndex(
            model_name="noticeaddress",
            index=models.Index(
                condition=models.Q(("confirmed_at__isnull", False)),
                fields=["user"],
                name="webhooks_address_confirmed",
            ),
        ),
        migrations.AddIndex(
            model_name="subject",
            index=models.Index(
                condition=models.Q(("is_open", True), ("kind", "call")),
                fields=["id"],
                name="webhooks_subject_open",
            ),
        ),
        migrations.AddIndex(
            model_name="subject",
            index=models.Index(
                condition=models.Q(("is_open", True), ("kind", "sponsored")),
                fields=["row_id"],
                name="webhooks_subject_sponsored",
            ),
        ),
        migrations.AddConstraint(
            model_name="subject",
            constraint=models.UniqueConstraint(
                fields=("kind", "row_id", "endpoint"), name="webhooks_subject_once"
            ),
        ),
    ]
