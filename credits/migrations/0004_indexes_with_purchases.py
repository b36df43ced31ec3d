from django.contrib.postgres.operations import (
    AddIndexConcurrently,
    RemoveIndexConcurrently,
    ValidateConstraint,
)
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("credits", "0003_purchases")]

    operations = [
        ValidateConstraint(model_name="creditentry", name="credits_entry_source_known"),
        AddIndexConcurrently(
            model_name="creditentry",
            index=models.Index(
                condition=models.Q(
                    (
                        "source__in",
                        [
                            "SUBSCRIBED_PAYOUT",
                            "CREDIT_PURCHASE",
                            "PUSH_ADS",
                            "VIDEO_ADS",
                            "OFFERWALL",
                            "SURVEYS",
                            "EARNING_REVERSAL",
                            "PAYOUT_CLAWBACK",
                        ],
                    )
                ),
                fields=["account", "source"],
                include=("amount",),
                name="credits_entry_kept",
            ),
        ),
        AddIndexConcurrently(
            model_name="creditentry",
            index=models.Index(
                condition=models.Q(
                    (
                        "source__in",
                        [
                            "SUBSCRIBED_PAYOUT",
                            "CREDIT_PURCHASE",
                            "RELAY_REVERSAL",
                            "EARNING_REVERSAL",
                            "PAYOUT_CLAWBACK",
                            "STAFF_ADJUSTMENT",
                        ],
                    )
                ),
                fields=["source", "-id"],
                name="credits_entry_rare",
            ),
        ),
        RemoveIndexConcurrently(model_name="creditentry", name="credits_entry_proofs"),
        RemoveIndexConcurrently(model_name="creditentry", name="credits_entry_rare_sources"),
    ]
