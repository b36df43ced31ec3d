from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


class Migration(migrations.Migration):
    reviewed = {
        "RemoveConstraint": "a wider one follows in the same transaction",
        "AlterField": "choices alone; no statement runs",
    }

    dependencies = [("credits", "0002_move_roots_to_proofs")]

    operations = [
        migrations.RemoveConstraint(model_name="creditentry", name="credits_entry_source_known"),
        migrations.AlterField(
            model_name="creditentry",
            name="source",
            field=models.CharField(
                choices=[
                    ("SUBSCRIBED_PAYOUT", "Subscribed Payout"),
                    ("CREDIT_PURCHASE", "Credit Purchase"),
                    ("PUSH_ADS", "Push Ads"),
                    ("VIDEO_ADS", "Video Ads"),
                    ("OFFERWALL", "Offerwall"),
                    ("SURVEYS", "Surveys"),
                    ("CHECK_IN", "Check In"),
                    ("CREDITS_BACK", "Credits Back"),
                    ("RELAY_TRANSACTION", "Relay Transaction"),
                    ("RELAY_REVERSAL", "Relay Reversal"),
                    ("EARNING_REVERSAL", "Earning Reversal"),
                    ("PAYOUT_CLAWBACK", "Payout Clawback"),
                    ("STAFF_ADJUSTMENT", "Staff Adjustment"),
                ],
                max_length=32,
            ),
        ),
        AddConstraintNotValid(
            model_name="creditentry",
            constraint=models.CheckConstraint(
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
                            "CHECK_IN",
                            "CREDITS_BACK",
                            "RELAY_TRANSACTION",
                            "RELAY_REVERSAL",
                            "EARNING_REVERSAL",
                            "PAYOUT_CLAWBACK",
                            "STAFF_ADJUSTMENT",
                        ],
                    )
                ),
                name="credits_entry_source_known",
            ),
        ),
    ]
