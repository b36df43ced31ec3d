import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    reviewed = {"AlterField": "choices alone; no statement runs"}

    dependencies = [
        ("sponsors", "0001_initial"),
        ("webhooks", "0007_sponsors"),
    ]

    operations = [
        migrations.AddField(
            model_name="endpoint",
            name="sponsor",
            field=models.ForeignKey(
                db_index=False,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="endpoints",
                to="sponsors.sponsor",
            ),
        ),
        migrations.AlterField(
            model_name="endpoint",
            name="disabled_by",
            field=models.CharField(
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
                    ("webhook.test", "webhook.test"),
                ],
                max_length=40,
            ),
        ),
    ]
