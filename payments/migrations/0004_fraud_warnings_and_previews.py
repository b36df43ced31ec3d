from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("payments", "0003_as_stripe_is"),
    ]

    operations = [
        migrations.AddField(
            model_name="payout",
            name="fraud_warned_at",
            field=models.DateTimeField(
                help_text="When a card network first warned of fraud in this payment.", null=True
            ),
        ),
        migrations.AddField(
            model_name="refund",
            name="parts",
            field=models.JSONField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="subscription",
            name="next_minor",
            field=models.BigIntegerField(
                help_text="What the next invoice will charge, as Stripe last previewed it.", null=True
            ),
        ),
        migrations.AddField(
            model_name="subscription",
            name="next_previewed_at",
            field=models.DateTimeField(null=True),
        ),
        AddIndexConcurrently(
            model_name="payout",
            index=models.Index(
                condition=models.Q(("fraud_warned_at__isnull", False)),
                fields=["fraud_warned_at"],
                name="payout_fraud_warned",
            ),
        ),
    ]
