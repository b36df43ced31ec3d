from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    reviewed = {"AlterField": "choices and help alone; no statement runs"}

    dependencies = [
        ("webhooks", "0009_messages_of_an_endpoint"),
    ]

    operations = [
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
                    ("sponsor.posted", "sponsor.posted"),
                    ("sponsor.call-settled", "sponsor.call-settled"),
                    ("sponsor.call-reopened", "sponsor.call-reopened"),
                    ("webhook.test", "webhook.test"),
                ],
                max_length=40,
            ),
        ),
        migrations.AlterField(
            model_name="subject",
            name="kind",
            field=models.CharField(
                choices=[("call", "Call"), ("sponsored", "Sponsored"), ("subscription", "Subscription")],
                max_length=12,
            ),
        ),
        migrations.AlterField(
            model_name="subject",
            name="row_id",
            field=models.BigIntegerField(
                help_text="Id of the relay transaction, sponsored call or subscription."
            ),
        ),
        AddIndexConcurrently(
            model_name="subject",
            index=models.Index(
                condition=models.Q(("is_open", True), ("kind", "sponsored")),
                fields=["row_id"],
                name="webhooks_subject_sponsored",
            ),
        ),
    ]
