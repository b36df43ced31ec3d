from django.db import migrations, models


class Migration(migrations.Migration):
    reviewed = {"AlterField": "choices alone; no statement runs"}

    dependencies = [
        ("webhooks", "0005_notices"),
    ]

    operations = [
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
                ],
                max_length=20,
            ),
        ),
    ]
