from decimal import Decimal

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("credits", "0002_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="VerifierKeySet",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("slug", models.CharField(max_length=40, unique=True)),
                ("keys", models.JSONField()),
                ("fetched_at", models.DateTimeField()),
            ],
            options={
                "db_table": "earnings_verifierkeyset",
            },
        ),
        migrations.CreateModel(
            name="AdNetwork",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("slug", models.CharField(max_length=40, unique=True)),
                (
                    "is_enabled",
                    models.BooleanField(
                        default=False, help_text="Postbacks of a disabled network get a 404."
                    ),
                ),
                (
                    "is_weak",
                    models.BooleanField(
                        editable=False,
                        help_text="Whether its signature omits the user, the amount or the id.",
                    ),
                ),
                ("path_token_hash", models.CharField(blank=True, default="", editable=False, max_length=64)),
                ("current_secret", models.TextField(blank=True, default="", editable=False)),
                ("previous_secret", models.TextField(blank=True, default="", editable=False)),
                ("secret_changed_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "rate",
                    models.DecimalField(
                        decimal_places=8,
                        default=Decimal(1),
                        help_text="Credits per unit of the network's amount.",
                        max_digits=16,
                    ),
                ),
                (
                    "allowed_addresses",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=49),
                        blank=True,
                        default=list,
                        help_text="IP addresses or networks that may send; empty allows any.",
                        size=None,
                    ),
                ),
                (
                    "allowed_ad_units",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=60),
                        blank=True,
                        default=list,
                        help_text="For AdMob: our ad units. Google also signs postbacks of other publishers.",
                        size=None,
                    ),
                ),
                (
                    "per_event_cap",
                    models.BigIntegerField(
                        default=25000,
                        help_text="Credits of one event at most; a larger one is held until two people release it.",
                    ),
                ),
                (
                    "daily_cap",
                    models.BigIntegerField(
                        default=50000,
                        help_text="Credits per user and UTC day at most; what exceeds it is held until two people release it.",
                    ),
                ),
                (
                    "hold_hours",
                    models.PositiveIntegerField(
                        default=0, help_text="Hours that credits wait before they can be spent."
                    ),
                ),
            ],
            options={
                "db_table": "earnings_adnetwork",
                "ordering": ("slug",),
                "permissions": [("decide_adnetwork", "Can decide other people's requests about ad networks")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("rate__gt", 0)), name="earnings_adnetwork_rate_positive"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("daily_cap__gt", 0), ("per_event_cap__gt", 0)),
                        name="earnings_adnetwork_caps_positive",
                        violation_error_message="A cap is at least one credit.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("is_enabled", False),
                            ("is_weak", False),
                            models.Q(
                                models.Q(("path_token_hash", ""), _negated=True),
                                ("allowed_addresses__len__gt", 0),
                                ("hold_hours__gt", 0),
                            ),
                            _connector="OR",
                        ),
                        name="earnings_adnetwork_weak_is_guarded",
                        violation_error_message="The network's signature does not cover user, amount and id. Enabling it needs a path token, an address list and hours of hold.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("is_enabled", False),
                            models.Q(("slug", "admob"), _negated=True),
                            ("allowed_ad_units__len__gt", 0),
                            _connector="OR",
                        ),
                        name="earnings_adnetwork_admob_has_ad_units",
                        violation_error_message="Google signs for every publisher. Enabling AdMob needs the ad units that are yours.",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("path_token_hash", ""), _negated=True),
                        fields=("path_token_hash",),
                        name="earnings_adnetwork_path_token",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DailyEarnings",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("scope", models.CharField(blank=True, max_length=40)),
                ("credits", models.BigIntegerField()),
            ],
            options={
                "db_table": "earnings_daily",
                "constraints": [
                    models.UniqueConstraint(fields=("day", "scope"), name="earnings_daily_day_scope"),
                    models.CheckConstraint(
                        condition=models.Q(("credits__gte", 0)), name="earnings_daily_not_negative"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="NetworkUser",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("reference", models.CharField(max_length=32)),
                (
                    "network",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="earnings.adnetwork",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "earnings_networkuser",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("network", "reference"), name="earnings_networkuser_reference"
                    ),
                    models.UniqueConstraint(fields=("network", "user"), name="earnings_networkuser_user"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Postback",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("external_id", models.CharField(max_length=200)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("CREDIT", "Credit"),
                            ("REVERSAL", "Reversal"),
                            ("PENDING", "Pending"),
                            ("INFO", "Info"),
                            ("TEST", "Test"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "original_id",
                    models.CharField(help_text="The credit that a reversal takes back.", max_length=200),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("RECEIVED", "Received: a reversal whose credit has not arrived"),
                            ("PENDING", "Pending: the network has not decided"),
                            ("UNASSIGNED", "Names no user: staff can give it to a person"),
                            ("HELD", "Held: credited at the end of the hold, or when two people release it"),
                            ("AVAILABLE", "Available: credited"),
                            ("REVERSED", "Reversed"),
                            ("INFO", "Nothing to do"),
                            ("REFUSED", "Refused: see the reason"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "refused_because",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("ABOVE_A_CAP", "Above a cap"),
                            ("ANOTHERS_CREDIT", "Its user differs from the user of the credit to reverse"),
                            ("FORFEITED", "Forfeited by staff while it was held"),
                            ("CLOSED", "Closed by staff without an effect"),
                        ],
                        db_default="",
                        default="",
                        max_length=20,
                    ),
                ),
                (
                    "hold_reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("EVENT_CAP", "Above the network's cap per event"),
                            ("PERSON_CAP", "Above the network's cap per person and day"),
                            ("NETWORK_SHARE", "Above the network's share of the daily ceiling"),
                            ("DAILY_CEILING", "Above the daily ceiling of all networks"),
                            ("REVERSALS", "Half of the person's earnings were taken back"),
                        ],
                        db_default="",
                        default="",
                        max_length=20,
                    ),
                ),
                (
                    "amount",
                    models.DecimalField(decimal_places=12, help_text="In the network's unit.", max_digits=36),
                ),
                (
                    "takes_back",
                    models.DecimalField(
                        decimal_places=12,
                        help_text="For a reversal: the amount to take back, in the network's unit; empty for all of it.",
                        max_digits=36,
                        null=True,
                    ),
                ),
                ("payout_usd", models.DecimalField(decimal_places=12, max_digits=36, null=True)),
                (
                    "rate",
                    models.DecimalField(
                        decimal_places=8, help_text="Credits per unit at that time.", max_digits=16
                    ),
                ),
                ("badge_bonus", models.DecimalField(decimal_places=4, default=0, max_digits=9)),
                ("modifier_bonus", models.DecimalField(decimal_places=4, default=0, max_digits=9)),
                (
                    "credits",
                    models.BigIntegerField(
                        default=0,
                        help_text="floor(amount × rate × (1 + badge bonus + modifier bonus)); for a reversal, the credits taken back.",
                    ),
                ),
                (
                    "available_at",
                    models.DateTimeField(
                        help_text="When held credits are posted; empty beyond a cap, which two people decide.",
                        null=True,
                    ),
                ),
                (
                    "decided_at",
                    models.DateTimeField(help_text="When its state last changed by a decision.", null=True),
                ),
                ("occurred_at", models.DateTimeField(help_text="By the network's clock.", null=True)),
                ("received_at", models.DateTimeField()),
                (
                    "is_conflicting",
                    models.BooleanField(
                        default=False,
                        help_text="It was repeated with different content; the first content counts.",
                    ),
                ),
                (
                    "conflicted_at",
                    models.DateTimeField(help_text="When it last came with different content.", null=True),
                ),
                ("raw", models.BinaryField(help_text="The query or the body, as received.")),
                ("headers", models.JSONField(default=dict)),
                (
                    "payload_hash",
                    models.CharField(help_text="SHA-256 of the event's content.", max_length=64),
                ),
                ("request_id", models.CharField(blank=True, default="", max_length=64)),
                (
                    "entry",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="credits.creditentry",
                    ),
                ),
                (
                    "network",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="earnings.adnetwork",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "earnings_postback",
                "permissions": [
                    ("decide_earning", "Can forfeit a held earning, and ask for its early release"),
                    ("decide_release", "Can decide other people's requests for early releases"),
                ],
                "indexes": [
                    django.contrib.postgres.indexes.BrinIndex(
                        autosummarize=True, fields=["received_at"], name="earnings_postback_by_time"
                    ),
                    models.Index(fields=["network", "original_id"], name="earnings_postback_original"),
                    models.Index(fields=["user", "received_at"], name="earnings_postback_user"),
                    models.Index(
                        condition=models.Q(("request_id", ""), _negated=True),
                        fields=["request_id"],
                        name="earnings_postback_request",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("kind__in", ["INFO", "TEST", "PENDING"]),
                            models.Q(("kind", "REVERSAL"), ("state__in", ["REFUSED", "INFO"])),
                            _connector="OR",
                        ),
                        fields=["received_at"],
                        name="earnings_postback_worthless",
                    ),
                    models.Index(
                        condition=models.Q(("state", "HELD")),
                        fields=["available_at"],
                        name="earnings_postback_due",
                    ),
                    models.Index(
                        condition=models.Q(("state__in", ["RECEIVED", "UNASSIGNED"])),
                        fields=["received_at"],
                        name="earnings_postback_unmatched",
                    ),
                    models.Index(
                        condition=models.Q(("user__isnull", False)),
                        fields=["decided_at"],
                        name="earnings_postback_decided",
                    ),
                    models.Index(
                        condition=models.Q(("conflicted_at__isnull", False)),
                        fields=["conflicted_at"],
                        name="earnings_postback_conflict",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "REVERSAL"), _negated=True),
                        fields=("network", "external_id", "kind"),
                        name="earnings_postback_network_event",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "REVERSAL")),
                        fields=("network", "external_id", "user"),
                        name="earnings_postback_reversal_of_user",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "REVERSAL"), ("user", None)),
                        fields=("network", "external_id"),
                        name="earnings_postback_reversal_of_nobody",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("refused_because", ""), ("state", "REFUSED"), _connector="OR"),
                        name="earnings_postback_refusal_has_state",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("takes_back", None),
                            models.Q(("kind", "REVERSAL"), ("takes_back__gt", 0)),
                            _connector="OR",
                        ),
                        name="earnings_postback_only_reversals_take_back",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "RECEIVED",
                                    "PENDING",
                                    "UNASSIGNED",
                                    "HELD",
                                    "AVAILABLE",
                                    "REVERSED",
                                    "INFO",
                                    "REFUSED",
                                ],
                            )
                        ),
                        name="earnings_postback_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["CREDIT", "REVERSAL", "PENDING", "INFO", "TEST"])),
                        name="earnings_postback_kind_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("credits__gte", 0)), name="earnings_postback_credits_not_negative"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "HELD"), _negated=True),
                            models.Q(
                                ("entry", None),
                                ("kind", "CREDIT"),
                                models.Q(
                                    ("available_at__isnull", False),
                                    (
                                        "hold_reason__in",
                                        ("EVENT_CAP", "PERSON_CAP", "NETWORK_SHARE", "DAILY_CEILING"),
                                    ),
                                    _connector="OR",
                                ),
                            ),
                            _connector="OR",
                        ),
                        name="earnings_postback_held_has_time_or_cap",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("entry", None),
                            models.Q(("credits__gt", 0), ("state__in", ["AVAILABLE", "REVERSED"])),
                            _connector="OR",
                        ),
                        name="earnings_postback_entry_has_credits",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("user__isnull", False),
                            ("kind__in", ["INFO", "TEST", "PENDING"]),
                            ("state__in", ["UNASSIGNED", "REFUSED"]),
                            _connector="OR",
                        ),
                        name="earnings_postback_named_or_unassigned",
                    ),
                ],
            },
        ),
    ]
