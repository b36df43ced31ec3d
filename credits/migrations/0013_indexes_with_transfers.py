from django.contrib.postgres.operations import (
    AddIndexConcurrently,
    RemoveIndexConcurrently,
    ValidateConstraint,
)
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("credits", "0012_transfers")]

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
                            "TRANSFER_OUT",
                        ],
                    )
                ),
                fields=["account", "source"],
                include=("amount",),
                name="credits_entry_proving",
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
                            "TRANSFER_OUT",
                            "STAFF_ADJUSTMENT",
                            "TRANSFER_IN",
                        ],
                    )
                ),
                fields=["source", "-id"],
                name="credits_entry_finance",
            ),
        ),
        RemoveIndexConcurrently(model_name="creditentry", name="credits_entry_kept"),
        RemoveIndexConcurrently(model_name="creditentry", name="credits_entry_rare"),
    ]
