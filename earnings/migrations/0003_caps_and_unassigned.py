from django.conf import settings
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models

# Of networks for which staff chose no cap, in credits.
EVENT_CAP, DAILY_CAP = 25_000, 50_000


class Migration(migrations.Migration):
    """Every network gets caps. What exceeds one is held, and what names no user waits for staff."""

    reviewed = {
        "RunSQL": "it fills a few rows of a small table",
        "AlterField": "adnetwork has a row per network, and the old code writes none; the others change texts",
        "RemoveConstraint": "a stricter or wider one follows in the same transaction",
    }
    dependencies = [
        ("credits", "0001_initial"),
        ("earnings", "0002_amounts_as_networks_print_them"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
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
            },
        ),
        migrations.AddConstraint(
            model_name="dailyearnings",
            constraint=models.UniqueConstraint(fields=("day", "scope"), name="earnings_daily_day_scope"),
        ),
        migrations.AddConstraint(
            model_name="dailyearnings",
            constraint=models.CheckConstraint(
                condition=models.Q(("credits__gte", 0)), name="earnings_daily_not_negative"
            ),
        ),
        migrations.RunSQL(
            [
                ("UPDATE earnings_adnetwork SET per_event_cap = %s WHERE per_event_cap IS NULL", [EVENT_CAP]),
                ("UPDATE earnings_adnetwork SET daily_cap = %s WHERE daily_cap IS NULL", [DAILY_CAP]),
            ],
            migrations.RunSQL.noop,
        ),
        migrations.RemoveConstraint(
            model_name="adnetwork",
            name="earnings_adnetwork_caps_positive",
        ),
        migrations.RemoveConstraint(
            model_name="adnetwork",
            name="earnings_adnetwork_weak_is_guarded",
        ),
        migrations.RemoveConstraint(
            model_name="postback",
            name="earnings_postback_state_known",
        ),
        migrations.RemoveConstraint(
            model_name="postback",
            name="earnings_postback_held_has_time_and_no_entry",
        ),
        migrations.RemoveConstraint(
            model_name="postback",
            name="earnings_postback_has_user",
        ),
        migrations.AddField(
            model_name="postback",
            name="conflicted_at",
            field=models.DateTimeField(help_text="When it last came with different content.", null=True),
        ),
        migrations.AddField(
            model_name="postback",
            name="hold_reason",
            field=models.CharField(
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
        migrations.AlterField(
            model_name="adnetwork",
            name="daily_cap",
            field=models.BigIntegerField(
                default=50000,
                help_text="Credits per user and UTC day at most; what exceeds it is held until two people release it.",
            ),
        ),
        migrations.AlterField(
            model_name="adnetwork",
            name="per_event_cap",
            field=models.BigIntegerField(
                default=25000,
                help_text="Credits of one event at most; a larger one is held until two people release it.",
            ),
        ),
        migrations.AlterField(
            model_name="postback",
            name="available_at",
            field=models.DateTimeField(
                help_text="When held credits are posted; empty beyond a cap, which two people decide.",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="postback",
            name="refused_because",
            field=models.CharField(
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
        migrations.AlterField(
            model_name="postback",
            name="state",
            field=models.CharField(
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
        AddConstraintNotValid(
            model_name="adnetwork",
            constraint=models.CheckConstraint(
                condition=models.Q(("daily_cap__gt", 0), ("per_event_cap__gt", 0)),
                name="earnings_adnetwork_caps_positive",
                violation_error_message="A cap is at least one credit.",
            ),
        ),
        AddConstraintNotValid(
            model_name="adnetwork",
            constraint=models.CheckConstraint(
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
        ),
        AddConstraintNotValid(
            model_name="postback",
            constraint=models.CheckConstraint(
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
        ),
        AddConstraintNotValid(
            model_name="postback",
            constraint=models.CheckConstraint(
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
        ),
        AddConstraintNotValid(
            model_name="postback",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("user__isnull", False),
                    ("kind__in", ["INFO", "TEST", "PENDING"]),
                    ("state__in", ["UNASSIGNED", "REFUSED"]),
                    _connector="OR",
                ),
                name="earnings_postback_named_or_unassigned",
            ),
        ),
    ]
