import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    reviewed = {"AlterField": "choices alone; no statement runs"}

    dependencies = [
        ("webhooks", "0003_credits_expiring"),
    ]

    operations = [
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
                    ("webhook.test", "webhook.test"),
                ],
                max_length=40,
            ),
        ),
    ]
