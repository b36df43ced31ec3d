import uuid

import django.db.models.deletion
import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("credits", "0002_initial"),
        ("gateway_admin", "0001_initial"),
        ("sponsors", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="CreditPack",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "code",
                    models.SlugField(
                        help_text="Its id in the API, such as usd-10.", max_length=40, unique=True
                    ),
                ),
                ("currency", models.CharField(max_length=3)),
                ("amount_minor", models.BigIntegerField(help_text="Its price with tax, in minor units.")),
                (
                    "bonus_credits",
                    models.BigIntegerField(
                        default=0, help_text="Credits beyond those that the payout rate gives for the price."
                    ),
                ),
                ("is_offered", models.BooleanField(default=True, help_text="Whether it can be bought now.")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "permissions": [
                    ("decide_creditpack", "Can decide other people's requests about credit packs")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("amount_minor__gt", 0)), name="creditpack_amount_positive"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("bonus_credits__gte", 0)), name="creditpack_bonus_not_negative"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AutoTopUp",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "threshold",
                    models.BigIntegerField(help_text="A pack is bought when fewer credits are available."),
                ),
                ("amount_minor", models.BigIntegerField(help_text="The pack's price that was agreed to.")),
                ("currency", models.CharField(max_length=3)),
                (
                    "bonus_credits",
                    models.BigIntegerField(default=0, help_text="The pack's bonus that was agreed to."),
                ),
                (
                    "monthly_limit_minor",
                    models.BigIntegerField(
                        help_text="Automatic purchases in a calendar month (UTC), at most, in minor units."
                    ),
                ),
                ("consent", models.TextField(help_text="The text that the user has accepted.")),
                ("consented_at", models.DateTimeField()),
                ("withdrawn_at", models.DateTimeField(null=True)),
                ("paused_at", models.DateTimeField(null=True)),
                (
                    "paused_reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("card-declined", "Card Declined"),
                            ("authentication-required", "Authentication Required"),
                            ("payment-method-required", "Payment Method Required"),
                            ("billing-refused", "Billing Refused"),
                            ("no-credits", "No Credits"),
                            ("pack-changed", "Pack Changed"),
                        ],
                        default="",
                        max_length=24,
                    ),
                ),
                ("decline_code", models.CharField(blank=True, default="", max_length=64)),
                ("last_tried_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="auto_top_ups",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "pack",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="payments.creditpack",
                    ),
                ),
            ],
        ),
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
                    models.BigIntegerField(help_text="Money collected for our product, without tax."),
                ),
                ("tax_minor", models.BigIntegerField(default=0, help_text="Tax collected with it.")),
                (
                    "other_minor",
                    models.BigIntegerField(
                        db_default=0,
                        default=0,
                        help_text="Money collected with it for the invoice's lines of other products.",
                    ),
                ),
                (
                    "refunded_minor",
                    models.BigIntegerField(
                        db_default=0, default=0, help_text="Money returned by refunds, including tax."
                    ),
                ),
                (
                    "disputed_minor",
                    models.BigIntegerField(
                        db_default=0, default=0, help_text="Money withdrawn by disputes, including tax."
                    ),
                ),
                (
                    "fraud_warned_at",
                    models.DateTimeField(
                        help_text="When a card network first warned of fraud in this payment.", null=True
                    ),
                ),
                ("currency", models.CharField(max_length=3)),
                (
                    "country",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The payer's, where Stripe computes tax.",
                        max_length=2,
                    ),
                ),
                ("period_start", models.DateTimeField(null=True)),
                ("period_end", models.DateTimeField(null=True)),
                ("credits", models.BigIntegerField()),
                (
                    "bonus_credits",
                    models.BigIntegerField(
                        db_default=0,
                        default=0,
                        help_text="The part of the credits that a pack gives beyond the rate.",
                    ),
                ),
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
            name="MoneyReturn",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("refunded_minor", models.BigIntegerField(help_text="By refunds, including tax.")),
                ("disputed_minor", models.BigIntegerField(help_text="By disputes, including tax.")),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), db_index=True),
                ),
                (
                    "payout",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="money_returns",
                        to="payments.payout",
                    ),
                ),
            ],
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
            options={
                "permissions": [("export_clawback", "Can export clawbacks")],
            },
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
            name="Purchase",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("idempotency_key", models.CharField(blank=True, default="", max_length=128)),
                ("amount_minor", models.BigIntegerField(help_text="The price with tax, in minor units.")),
                ("currency", models.CharField(max_length=3)),
                (
                    "bonus_credits",
                    models.BigIntegerField(default=0, help_text="The pack's bonus when it was ordered."),
                ),
                ("stripe_invoice_id", models.CharField(blank=True, default="", max_length=255)),
                (
                    "status",
                    models.CharField(
                        choices=[("open", "Open"), ("paid", "Paid"), ("void", "Void")],
                        default="open",
                        max_length=4,
                    ),
                ),
                (
                    "failure_code",
                    models.CharField(
                        blank=True, default="", help_text="Why an automatic purchase failed.", max_length=40
                    ),
                ),
                ("created_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "customer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="purchases",
                        to="payments.customer",
                    ),
                ),
                (
                    "pack",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="purchases",
                        to="payments.creditpack",
                    ),
                ),
                (
                    "sponsor",
                    models.ForeignKey(
                        db_index=False,
                        help_text="Gets the credits; where empty, the payer does.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="purchases",
                        to="sponsors.sponsor",
                    ),
                ),
                (
                    "top_up",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="purchases",
                        to="payments.autotopup",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="purchases",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "permissions": [("export_purchase", "Can export purchases")],
            },
        ),
        migrations.AddField(
            model_name="payout",
            name="purchase",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="payments.purchase",
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
                ("parts", models.JSONField(editable=False, null=True)),
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
                "permissions": [
                    ("send_refund", "Can have a refund sent to Stripe again"),
                    ("export_refund", "Can export refunds"),
                ],
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
                (
                    "cancels_at",
                    models.DateTimeField(
                        help_text="When Stripe will end it, by a date that was set there.", null=True
                    ),
                ),
                (
                    "is_resting",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Stripe makes invoices without collecting them.",
                    ),
                ),
                (
                    "rests_until",
                    models.DateTimeField(
                        help_text="When Stripe collects again, where a date was set.", null=True
                    ),
                ),
                (
                    "latest_invoice",
                    models.CharField(
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
                (
                    "next_minor",
                    models.BigIntegerField(
                        help_text="What the next invoice will charge, as Stripe last previewed it.", null=True
                    ),
                ),
                ("next_previewed_at", models.DateTimeField(null=True)),
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
                null=True,
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
            model_name="autotopup",
            constraint=models.UniqueConstraint(
                condition=models.Q(("withdrawn_at", None)), fields=("user",), name="autotopup_one_per_user"
            ),
        ),
        migrations.AddConstraint(
            model_name="autotopup",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("amount_minor__gt", 0),
                    ("monthly_limit_minor__gte", models.F("amount_minor")),
                    ("threshold__gt", 0),
                    models.Q(("consent", ""), _negated=True),
                ),
                name="autotopup_terms",
            ),
        ),
        migrations.AddConstraint(
            model_name="autotopup",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("paused_at", None), ("paused_reason", "")),
                    models.Q(
                        models.Q(("paused_at", None), _negated=True),
                        models.Q(("paused_reason", ""), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="autotopup_paused_for_a_reason",
            ),
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
            model_name="moneyreturn",
            constraint=models.CheckConstraint(
                condition=models.Q(("disputed_minor", 0), ("refunded_minor", 0), _negated=True),
                name="moneyreturn_not_empty",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="moneyreturn",
            trigger=pgtrigger.compiler.Trigger(
                name="append_only",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;",
                    hash="f5c2fefe9888f70de9ba1b8ff85f20a345f51e3e",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_69205",
                    table="payments_moneyreturn",
                    when="BEFORE",
                ),
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
        migrations.AddIndex(
            model_name="purchase",
            index=models.Index(
                condition=models.Q(("status", "open")), fields=["created_at"], name="purchase_open"
            ),
        ),
        migrations.AddIndex(
            model_name="purchase",
            index=models.Index(
                condition=models.Q(("sponsor__isnull", False)), fields=["sponsor"], name="purchase_of_sponsor"
            ),
        ),
        migrations.AddIndex(
            model_name="purchase",
            index=models.Index(
                condition=models.Q(("top_up__isnull", False)),
                fields=["finished_at"],
                name="purchase_automatic",
            ),
        ),
        migrations.AddConstraint(
            model_name="purchase",
            constraint=models.UniqueConstraint(
                condition=models.Q(("idempotency_key", ""), _negated=True),
                fields=("user", "idempotency_key"),
                name="purchase_key_once_per_user",
            ),
        ),
        migrations.AddConstraint(
            model_name="purchase",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status", "open")), fields=("user",), name="purchase_one_open_per_user"
            ),
        ),
        migrations.AddConstraint(
            model_name="purchase",
            constraint=models.UniqueConstraint(
                condition=models.Q(("stripe_invoice_id", ""), _negated=True),
                fields=("stripe_invoice_id",),
                name="purchase_invoice_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="purchase",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("finished_at", None), ("status", "open")),
                    models.Q(
                        models.Q(("status", "open"), _negated=True),
                        models.Q(("finished_at", None), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="purchase_finished_has_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="purchase",
            constraint=models.CheckConstraint(
                condition=models.Q(("amount_minor__gt", 0)), name="purchase_amount_positive"
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
            constraint=models.CheckConstraint(
                condition=models.Q(("amount_minor__gte", 0)), name="subscription_amount_not_negative"
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
        migrations.AddIndex(
            model_name="payout",
            index=models.Index(
                condition=models.Q(("fraud_warned_at__isnull", False)),
                fields=["fraud_warned_at"],
                name="payout_fraud_warned",
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
        migrations.AddConstraint(
            model_name="payout",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("period_end__isnull", False),
                        ("period_start__isnull", False),
                        ("purchase__isnull", True),
                        ("subscription__isnull", False),
                    ),
                    models.Q(
                        ("period_end__isnull", True),
                        ("period_start__isnull", True),
                        ("purchase__isnull", False),
                        ("subscription__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="payout_of_period_or_purchase",
            ),
        ),
        migrations.AddConstraint(
            model_name="payout",
            constraint=models.CheckConstraint(
                condition=models.Q(("bonus_credits__gte", 0), ("bonus_credits__lte", models.F("credits"))),
                name="payout_bonus_within_credits",
            ),
        ),
    ]
