from django.contrib.postgres.operations import AddIndexConcurrently, ValidateConstraint
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("credits", "0008_debts")]

    operations = [
        ValidateConstraint(model_name="creditentry", name="credits_entry_source_known"),
        AddIndexConcurrently(
            model_name="credithold",
            index=models.Index(
                condition=models.Q(("debt__gt", 0)), fields=["debt_day"], name="credits_hold_debt_of_day"
            ),
        ),
        AddIndexConcurrently(
            model_name="creditentry",
            index=models.Index(
                condition=models.Q(("source", "DEBT_TRANSFER")), fields=["-id"], name="credits_entry_debts"
            ),
        ),
    ]
