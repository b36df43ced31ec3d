import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("sponsors", "0004_calls_by_time"),
    ]

    operations = [
        migrations.AddField(
            model_name="sponsor",
            name="alarm_credits",
            field=models.BigIntegerField(
                blank=True,
                help_text="Its members are told when fewer credits are left; where empty, never.",
                null=True,
                validators=[django.core.validators.MinValueValidator(1)],
            ),
        ),
    ]
