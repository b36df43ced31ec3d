"""The constraint for all rows, which are read without a lock that a call waits for."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("relay", "rehearsed_3_rows")]

    operations = [ValidateConstraint("relaytransaction", "rehearsed_has_time")]
