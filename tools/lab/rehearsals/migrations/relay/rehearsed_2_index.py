"""An index, made while rows are written. A run that was interrupted leaves an invalid one, which this drops first."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    reviewed = {"RunSQL": "the index that an interrupted run has left is dropped concurrently"}
    dependencies = [("relay", "rehearsed_1_column")]

    operations = [
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS relay_rehearsed", migrations.RunSQL.noop),
        AddIndexConcurrently(
            "relaytransaction", models.Index(fields=["rehearsed_at", "id"], name="relay_rehearsed")
        ),
    ]
