import uuid

import django.db.models.deletion
from django.conf import settings
from django.contrib.postgres.operations import AddConstraintNotValid, ValidateConstraint
from django.db import migrations, models

# In each currency, until staff change them.
PRICES = (500, 1000, 2500)
CURRENCIES = ("usd", "eur", "gbp", "chf")


def begin(apps, schema_editor):
    packs = apps.get_model("payments", "CreditPack").objects
    for currency in CURRENCIES:
        for price in PRICES:
            packs.create(code=f"{currency}-{price // 100}", currency=currency, amount_minor=price)


class Migration(migrations.Migration):
    # Until the new code serves, no purchase exists: the old code reads no payout without a subscription.
    reviewed = {
        "AlterField": "drops NOT NULL, which scans nothing",
        "RunPython": "fills a new table",
    }

    dependencies = [
        ("payments", "0006_exports"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="payout",
            name="bonus_credits",
            field=models.BigIntegerField(
                db_default=0,
                default=0,
                help_text="The part of the credits that a pack gives beyond the rate.",
            ),
        ),
        migrations.AlterField(
            model_name="payout",
            name="amount_minor",
            field=models.BigIntegerField(help_text="Money collected for our product, without tax."),
        ),
        migrations.AlterField(
            model_name="payout",
            name="period_end",
            field=models.DateTimeField(null=True),
        ),
        migrations.AlterField(
            model_name="payout",
            name="period_start",
            field=models.DateTimeField(null=True),
        ),
        migrations.AlterField(
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
            options={"permissions": [("export_purchase", "Can export purchases")]},
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
        AddConstraintNotValid(
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
        ValidateConstraint(model_name="payout", name="payout_of_period_or_purchase"),
        AddConstraintNotValid(
            model_name="payout",
            constraint=models.CheckConstraint(
                condition=models.Q(("bonus_credits__gte", 0), ("bonus_credits__lte", models.F("credits"))),
                name="payout_bonus_within_credits",
            ),
        ),
        ValidateConstraint(model_name="payout", name="payout_bonus_within_credits"),
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
        migrations.AddIndex(
            model_name="purchase",
            index=models.Index(
                condition=models.Q(("status", "open")), fields=["created_at"], name="purchase_open"
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
        migrations.RunPython(begin, migrations.RunPython.noop),
    ]
