from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


class Migration(migrations.Migration):
    """The sources of transfers from people to sponsors."""

    reviewed = {
        "AlterField": "choices alone; no statement runs",
        "RemoveConstraint": "a wider one follows in the same transaction",
    }

    dependencies = [("credits", "0011_one_account_of_a_sponsor")]

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
                    ("CREDIT_EXPIRY", "Credit Expiry"),
                    ("DEBT_TRANSFER", "Debt Transfer"),
                    ("TRANSFER_OUT", "Transfer Out"),
                    ("TRANSFER_IN", "Transfer In"),
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
                            "CREDIT_EXPIRY",
                            "DEBT_TRANSFER",
                            "TRANSFER_OUT",
                            "TRANSFER_IN",
                        ],
                    )
                ),
                name="credits_entry_source_known",
            ),
        ),
    ]
