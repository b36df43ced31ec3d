import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("credits", "0001_initial"),
        ("gateway_admin", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Customer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("stripe_customer_id", models.CharField(max_length=255, unique=True)),
                ("last_synced_at", models.DateTimeField(null=True)),
                ("deleted_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="billing_customers",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Payout",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("stripe_invoice_id", models.CharField(max_length=255, unique=True)),
                (
                    "invoice_number",
                    models.CharField(
                        blank=True, default="", help_text="The number on the payer's invoice.", max_length=64
                    ),
                ),
                (
                    "stripe_payment_intent_id",
                    models.CharField(blank=True, db_index=True, default="", max_length=255),
                ),
                (
                    "amount_minor",
                    models.BigIntegerField(help_text="Money collected for the period, without tax."),
                ),
                ("tax_minor", models.BigIntegerField(default=0, help_text="Tax collected with it.")),
                ("currency", models.CharField(max_length=3)),
                ("period_start", models.DateTimeField()),
                ("period_end", models.DateTimeField()),
                ("credits", models.BigIntegerField()),
                ("created_at", models.DateTimeField()),
                (
                    "entry",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="payout",
                        to="credits.creditentry",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="payouts",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "permissions": [
                    ("export_payout", "Can export payouts"),
                    ("refund_payout", "Can request refunds"),
                    ("decide_refund", "Can decide other people's requests for refunds"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Clawback",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=300, unique=True)),
                ("credits", models.BigIntegerField()),
                ("created_at", models.DateTimeField()),
                (
                    "entry",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="clawback",
                        to="credits.creditentry",
                    ),
                ),
                (
                    "payout",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="clawbacks",
                        to="payments.payout",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="PayoutRate",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("currency", models.CharField(max_length=3)),
                ("credits_per_major_unit", models.PositiveIntegerField()),
                ("experience_per_minor_unit", models.PositiveIntegerField(default=1)),
                ("valid_from", models.DateTimeField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "permissions": [
                    ("decide_payoutrate", "Can decide other people's requests about payout rates")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("currency", "valid_from"), name="payoutrate_one_per_moment"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("credits_per_major_unit__gt", 0)),
                        name="payoutrate_credits_positive",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="payout",
            name="rate",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="payouts", to="payments.payoutrate"
            ),
        ),
        migrations.CreateModel(
            name="Refund",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("amount_minor", models.BigIntegerField(help_text="In the payout's currency.")),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("pending", "waits for Stripe"),
                            ("done", "refunded"),
                            ("refused", "refused by Stripe"),
                        ],
                        default="pending",
                        max_length=8,
                    ),
                ),
                ("outcome", models.CharField(blank=True, db_index=True, default="", max_length=255)),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("last_error", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "approval",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="gateway_admin.approvalrequest",
                    ),
                ),
                (
                    "payout",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="refunds",
                        to="payments.payout",
                    ),
                ),
            ],
            options={
                "permissions": [("send_refund", "Can have a refund sent to Stripe again")],
            },
        ),
        migrations.CreateModel(
            name="StripeEvent",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("stripe_event_id", models.CharField(max_length=255, unique=True)),
                ("type", models.CharField(max_length=80)),
                ("api_version", models.CharField(blank=True, default="", max_length=40)),
                ("object_id", models.CharField(max_length=255)),
                ("raw_body", models.BinaryField()),
                ("happened_at", models.DateTimeField(null=True)),
                (
                    "status",
                    models.CharField(
                        choices=[("received", "Received"), ("processed", "Processed"), ("failed", "Failed")],
                        default="received",
                        max_length=10,
                    ),
                ),
                (
                    "outcome",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("applied", "Applied"),
                            ("not-ours", "Not Ours"),
                            ("nothing", "nothing to do"),
                            ("dismissed", "Dismissed"),
                        ],
                        default="",
                        max_length=9,
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("last_error", models.TextField(blank=True, default="")),
                ("received_at", models.DateTimeField()),
                ("next_attempt_at", models.DateTimeField()),
                ("processed_at", models.DateTimeField(null=True)),
            ],
            options={
                "permissions": [
                    ("process_stripeevent", "Can have an event processed again"),
                    ("dismiss_stripeevent", "Can dismiss an event that cannot be applied"),
                ],
                "indexes": [
                    models.Index(
                        condition=models.Q(("status__in", ["received", "failed"])),
                        fields=["next_attempt_at"],
                        name="stripeevent_due",
                    ),
                    models.Index(fields=["object_id"], name="stripeevent_object"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("processed_at__isnull", False), ("status", "processed")),
                            models.Q(
                                models.Q(("status", "processed"), _negated=True),
                                ("processed_at__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="stripeevent_processed_has_time",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Subscription",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("stripe_subscription_id", models.CharField(max_length=255, unique=True)),
                ("stripe_item_id", models.CharField(db_index=True, max_length=255)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("incomplete", "Incomplete"),
                            ("incomplete_expired", "Incomplete Expired"),
                            ("trialing", "Trialing"),
                            ("active", "Active"),
                            ("past_due", "Past Due"),
                            ("canceled", "Canceled"),
                            ("unpaid", "Unpaid"),
                            ("paused", "Paused"),
                        ],
                        max_length=20,
                    ),
                ),
                ("amount_minor", models.BigIntegerField(help_text="Amount per month, in minor units.")),
                ("currency", models.CharField(max_length=3)),
                ("current_period_start", models.DateTimeField()),
                ("current_period_end", models.DateTimeField()),
                ("cancels_at_period_end", models.BooleanField(default=False)),
                ("ended_at", models.DateTimeField(null=True)),
                ("synced_at", models.DateTimeField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "customer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="subscriptions",
                        to="payments.customer",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="subscriptions",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "permissions": [("cancel_subscription", "Can cancel a subscription")],
            },
        ),
        migrations.AddField(
            model_name="payout",
            name="subscription",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="payouts",
                to="payments.subscription",
            ),
        ),
        migrations.CreateModel(
            name="BillingOperation",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("create-customer", "Create Customer"),
                            ("create-subscription", "Create Subscription"),
                            ("update-subscription", "Update Subscription"),
                            ("cancel-subscription", "Cancel Subscription"),
                        ],
                        max_length=24,
                    ),
                ),
                ("parameters", models.JSONField()),
                (
                    "status",
                    models.CharField(
                        choices=[("pending", "Pending"), ("done", "Done"), ("refused", "Refused")],
                        default="pending",
                        max_length=8,
                    ),
                ),
                ("outcome", models.CharField(blank=True, default="", max_length=255)),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="billing_operations",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("status", "pending")),
                        fields=["created_at"],
                        name="billingoperation_pending",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("status", "pending")),
                        fields=("user",),
                        name="billingoperation_one_pending_per_user",
                    )
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="customer",
            constraint=models.UniqueConstraint(
                condition=models.Q(("deleted_at__isnull", True)),
                fields=("user",),
                name="customer_one_not_deleted_per_user",
            ),
        ),
        migrations.AddConstraint(
            model_name="clawback",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("credits", 0), ("entry__isnull", True)),
                    models.Q(models.Q(("credits", 0), _negated=True), ("entry__isnull", False)),
                    _connector="OR",
                ),
                name="clawback_entry_when_moved",
            ),
        ),
        migrations.AddConstraint(
            model_name="refund",
            constraint=models.CheckConstraint(
                condition=models.Q(("amount_minor__gt", 0)), name="refund_amount_positive"
            ),
        ),
        migrations.AddConstraint(
            model_name="refund",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("finished_at", None), ("status", "pending")),
                    models.Q(
                        models.Q(("status", "pending"), _negated=True),
                        ("finished_at__isnull", False),
                        models.Q(("outcome", ""), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="refund_finished_with_outcome",
            ),
        ),
        migrations.AddConstraint(
            model_name="refund",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status", "pending")),
                fields=("payout",),
                name="refund_one_pending_per_payout",
            ),
        ),
        migrations.AddIndex(
            model_name="subscription",
            index=models.Index(fields=["synced_at"], name="subscription_synced"),
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status__in", ["canceled", "incomplete_expired"]), _negated=True),
                fields=("user",),
                name="subscription_one_live_per_user",
            ),
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.CheckConstraint(
                condition=models.Q(("amount_minor__gt", 0)), name="subscription_amount_positive"
            ),
        ),
        migrations.AddIndex(
            model_name="payout",
            index=models.Index(
                condition=models.Q(("invoice_number", ""), _negated=True),
                fields=["invoice_number"],
                name="payout_of_invoice_number",
            ),
        ),
        migrations.AddConstraint(
            model_name="payout",
            constraint=models.CheckConstraint(
                condition=models.Q(("amount_minor__gt", 0), ("credits__gt", 0)), name="payout_positive"
            ),
        ),
        migrations.AddConstraint(
            model_name="payout",
            constraint=models.CheckConstraint(
                condition=models.Q(("period_start__lt", models.F("period_end"))),
                name="payout_period_in_order",
            ),
        ),
    ]
