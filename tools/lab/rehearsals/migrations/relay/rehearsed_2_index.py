"""An index, made while rows are written. After an interruption, the next run replaces what the first one has left."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("relay", "rehearsed_1_column")]

    operations = [
        AddIndexConcurrently(
            "relaytransaction", models.Index(fields=["rehearsed_at", "id"], name="relay_rehearsed")
        ),
    ]
