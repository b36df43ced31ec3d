from django.contrib.postgres.operations import AddIndexConcurrently, ValidateConstraint
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    reviewed = {"RunSQL": "the index is made concurrently"}

    dependencies = [("earnings", "0003_caps_and_unassigned")]

    operations = [
        ValidateConstraint(model_name="adnetwork", name="earnings_adnetwork_caps_positive"),
        ValidateConstraint(model_name="adnetwork", name="earnings_adnetwork_weak_is_guarded"),
        ValidateConstraint(model_name="postback", name="earnings_postback_state_known"),
        ValidateConstraint(model_name="postback", name="earnings_postback_held_has_time_or_cap"),
        ValidateConstraint(model_name="postback", name="earnings_postback_named_or_unassigned"),
        AddIndexConcurrently(
            model_name="postback",
            index=models.Index(
                condition=models.Q(("state__in", ["RECEIVED", "UNASSIGNED"])),
                fields=["received_at"],
                name="earnings_postback_unmatched",
            ),
        ),
        AddIndexConcurrently(
            model_name="postback",
            index=models.Index(
                condition=models.Q(("conflicted_at__isnull", False)),
                fields=["conflicted_at"],
                name="earnings_postback_conflict",
            ),
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "CREATE UNIQUE INDEX CONCURRENTLY earnings_postback_reversal_of_nobody"
                    " ON earnings_postback (network_id, external_id) WHERE kind = 'REVERSAL' AND user_id IS NULL",
                    "DROP INDEX CONCURRENTLY earnings_postback_reversal_of_nobody",
                )
            ],
            state_operations=[
                migrations.AddConstraint(
                    model_name="postback",
                    constraint=models.UniqueConstraint(
                        condition=models.Q(("kind", "REVERSAL"), ("user", None)),
                        fields=("network", "external_id"),
                        name="earnings_postback_reversal_of_nobody",
                    ),
                ),
            ],
        ),
    ]
