from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    # A migration of its own, because the scan must not keep the lock of the one before.
    dependencies = [("credits", "0006_first_credits")]

    operations = [ValidateConstraint(model_name="creditentry", name="credits_entry_source_known")]
