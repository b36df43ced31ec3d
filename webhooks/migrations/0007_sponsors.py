import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    reviewed = {"AlterField": "choices alone; no statement runs"}

    dependencies = [
        ("sponsors", "0001_initial"),
        ("webhooks", "0006_notices_of_expiry"),
    ]

    operations = [
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
        migrations.AlterField(
            model_name="endpoint",
            name="event_types",
            field=django.contrib.postgres.fields.ArrayField(
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
        migrations.AlterField(
            model_name="message",
            name="type",
            field=models.CharField(
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
                    ("webhook.test", "webhook.test"),
                ],
                max_length=40,
            ),
        ),
        migrations.AlterField(
            model_name="notice",
            name="kind",
            field=models.CharField(
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
    ]
