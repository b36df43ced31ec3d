from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("credits", "0004_indexes_with_purchases")]

    operations = [
        AddIndexConcurrently(
            model_name="creditentry",
            index=models.Index(
                condition=models.Q(
                    ("source__in", ["RELAY_TRANSACTION", "CREDITS_BACK", "CHECK_IN"]), _negated=True
                ),
                fields=["account", "-account_version"],
                name="credits_entry_timeline",
            ),
        ),
    ]
