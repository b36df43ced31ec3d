from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("webhooks", "0008_endpoints_of_sponsors"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="message",
            index=models.Index(fields=["endpoint", "-id"], name="webhooks_message_newest"),
        ),
    ]
