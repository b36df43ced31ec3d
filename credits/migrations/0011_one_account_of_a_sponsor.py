import django.db.models.deletion
from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations, models

_INDEX = "credits_account_sponsor_id_key"


class Migration(migrations.Migration):
    atomic = False
    reviewed = {"RunSQL": "the index is created without a lock, and becomes the constraint at once"}

    dependencies = [("credits", "0010_owners_and_zero_holds")]

    operations = [
        ValidateConstraint(model_name="credithold", name="credits_hold_amount_not_negative"),
        ValidateConstraint(model_name="creditaccount", name="credits_account_one_owner"),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    # What a run that was interrupted has left.
                    f"DROP INDEX CONCURRENTLY IF EXISTS {_INDEX}",
                    migrations.RunSQL.noop,
                ),
                migrations.RunSQL(
                    f"CREATE UNIQUE INDEX CONCURRENTLY {_INDEX} ON credits_account (sponsor_id)",
                    migrations.RunSQL.noop,
                ),
                migrations.RunSQL(
                    f"ALTER TABLE credits_account ADD CONSTRAINT {_INDEX} UNIQUE USING INDEX {_INDEX}",
                    migrations.RunSQL.noop,
                ),
            ],
            state_operations=[
                migrations.AlterField(
                    model_name="creditaccount",
                    name="sponsor",
                    field=models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="credit_account",
                        to="sponsors.sponsor",
                    ),
                ),
            ],
        ),
    ]
