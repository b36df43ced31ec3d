from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("relay", "0008_attempts_by_time"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddIndex(
            model_name="relaytransaction",
            index=models.Index(
                condition=models.Q(("status__in", ["Failed", "Expired", "Cancelled", "ExecutedExternally"])),
                fields=["user", "-settled_at"],
                name="relaytransaction_dead_ends",
            ),
        ),
    ]
