import django.db.models.deletion
from django.contrib.postgres.operations import AddConstraintNotValid, ValidateConstraint
from django.db import migrations, models


class Migration(migrations.Migration):
    # Staff can make a second live subscription at Stripe, and one without a price. The old code reads and writes the
    # same rows; it makes no second one.
    reviewed = {"RemoveConstraint": "drops an index or a check, for which no row is read"}

    dependencies = [
        ("payments", "0002_starting_data"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="subscription", name="subscription_one_live_per_user"),
        migrations.RemoveConstraint(model_name="subscription", name="subscription_amount_positive"),
        AddConstraintNotValid(
            model_name="subscription",
            constraint=models.CheckConstraint(
                condition=models.Q(("amount_minor__gte", 0)), name="subscription_amount_not_negative"
            ),
        ),
        ValidateConstraint(model_name="subscription", name="subscription_amount_not_negative"),
        migrations.AddField(
            model_name="subscription",
            name="cancels_at",
            field=models.DateTimeField(
                help_text="When Stripe will end it, by a date that was set there.", null=True
            ),
        ),
        migrations.AddField(
            model_name="subscription",
            name="is_resting",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Stripe makes invoices without collecting them.",
            ),
        ),
        migrations.AddField(
            model_name="subscription",
            name="rests_until",
            field=models.DateTimeField(
                help_text="When Stripe collects again, where a date was set.", null=True
            ),
        ),
        migrations.AddField(
            model_name="subscription",
            name="latest_invoice",
            field=models.CharField(
                blank=True,
                choices=[
                    ("waiting", "waits to be collected"),
                    ("collected", "paid by card"),
                    ("balance", "paid from the customer's balance"),
                    ("credit-note", "settled by a credit note"),
                    ("off-stripe", "paid outside of Stripe"),
                    ("carried", "below the minimum charge: added to the next invoice"),
                    ("free", "nothing was due"),
                    ("void", "voided"),
                    ("uncollectible", "written off"),
                ],
                db_default="",
                default="",
                help_text="How it was settled.",
                max_length=16,
            ),
        ),
        migrations.AddField(
            model_name="payout",
            name="other_minor",
            field=models.BigIntegerField(
                db_default=0,
                default=0,
                help_text="Money collected with it for the invoice's lines of other products.",
            ),
        ),
        migrations.AddField(
            model_name="payout",
            name="refunded_minor",
            field=models.BigIntegerField(
                db_default=0, default=0, help_text="Money returned by refunds, including tax."
            ),
        ),
        migrations.AddField(
            model_name="payout",
            name="disputed_minor",
            field=models.BigIntegerField(
                db_default=0, default=0, help_text="Money withdrawn by disputes, including tax."
            ),
        ),
        migrations.CreateModel(
            name="FurtherPayment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("stripe_payment_intent_id", models.CharField(max_length=255, unique=True)),
                (
                    "payout",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="further_payments",
                        to="payments.payout",
                    ),
                ),
            ],
        ),
    ]
