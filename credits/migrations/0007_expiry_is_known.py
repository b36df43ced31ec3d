from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("credits", "0006_expiry")]

    operations = [ValidateConstraint(model_name="creditentry", name="credits_entry_source_known")]
