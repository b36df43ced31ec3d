from django.db import migrations, models


class Migration(migrations.Migration):
    reviewed = {"AlterField": "choices alone; no statement runs"}

    dependencies = [
        ("webhooks", "0003_notice_of_servers"),
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
                    ("sponsor.profile-created", "sponsor.profile-created"),
                    ("sponsor.profile-failed", "sponsor.profile-failed"),
                    ("webhook.test", "webhook.test"),
                ],
                max_length=40,
            ),
        ),
    ]
