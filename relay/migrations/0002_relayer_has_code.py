from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("relay", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="relayer",
            name="has_code",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="The account has code (EIP-7702), so nodes take one of its transactions at a time.",
            ),
        ),
    ]
