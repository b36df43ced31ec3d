"""Packs, purchases and automatic top-up, which need no subscription."""

import uuid

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q


class CreditPack(models.Model):
    """Credits that are sold for a fixed price, without a subscription."""

    code = models.SlugField(max_length=40, unique=True, help_text="Its id in the API, such as usd-10.")
    currency = models.CharField(max_length=3)
    amount_minor = models.BigIntegerField(help_text="Its price with tax, in minor units.")
    bonus_credits = models.BigIntegerField(
        default=0, help_text="Credits beyond those that the payout rate gives for the price."
    )
    is_offered = models.BooleanField(default=True, help_text="Whether it can be bought now.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        permissions = [("decide_creditpack", "Can decide other people's requests about credit packs")]
        constraints = [
            models.CheckConstraint(condition=Q(amount_minor__gt=0), name="creditpack_amount_positive"),
            models.CheckConstraint(condition=Q(bonus_credits__gte=0), name="creditpack_bonus_not_negative"),
        ]

    def __str__(self) -> str:
        return self.code

    def clean(self) -> None:
        """Refuse an unsupported currency."""
        if self.currency not in settings.BILLING_CURRENCIES:
            raise ValidationError({"currency": f"Supported: {', '.join(settings.BILLING_CURRENCIES)}."})


class Purchase(models.Model):
    """
    A one-off invoice for our product. The purchase's id is the idempotency key at Stripe.

    `user` pays; the credits go to the user, or to `sponsor` if it is set.

    A user or automatic top-up orders a purchase. A paid invoice that staff created at Stripe is stored as a purchase,
    too. A user has at most one open purchase.
    """

    class Status(models.TextChoices):
        OPEN = "open"
        PAID = "paid"
        VOID = "void"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="purchases")
    customer = models.ForeignKey("payments.Customer", models.PROTECT, related_name="purchases")
    sponsor = models.ForeignKey(
        "sponsors.Sponsor",
        models.PROTECT,
        null=True,
        related_name="purchases",
        db_index=False,
        help_text="Gets the credits; where empty, the payer does.",
    )
    # Chosen by the caller. Empty if staff created the invoice at Stripe.
    idempotency_key = models.CharField(max_length=128, blank=True, default="")
    pack = models.ForeignKey("payments.CreditPack", models.PROTECT, null=True, related_name="purchases")
    top_up = models.ForeignKey("payments.AutoTopUp", models.PROTECT, null=True, related_name="purchases")
    amount_minor = models.BigIntegerField(help_text="The price with tax, in minor units.")
    currency = models.CharField(max_length=3)
    bonus_credits = models.BigIntegerField(default=0, help_text="The pack's bonus when it was ordered.")
    # Empty until the response to the invoice's creation is stored.
    stripe_invoice_id = models.CharField(max_length=255, blank=True, default="")
    status = models.CharField(max_length=4, choices=Status, default=Status.OPEN)
    failure_code = models.CharField(max_length=40, blank=True, default="", help_text="Why it was not paid.")
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        permissions = [("export_purchase", "Can export purchases")]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "idempotency_key"],
                condition=~Q(idempotency_key=""),
                name="purchase_key_once_per_user",
            ),
            models.UniqueConstraint(
                fields=["user"], condition=Q(status="open"), name="purchase_one_open_per_user"
            ),
            models.UniqueConstraint(
                fields=["stripe_invoice_id"],
                condition=~Q(stripe_invoice_id=""),
                name="purchase_invoice_once",
            ),
            models.CheckConstraint(
                condition=Q(status="open", finished_at=None) | (~Q(status="open") & ~Q(finished_at=None)),
                name="purchase_finished_has_time",
            ),
            models.CheckConstraint(condition=Q(amount_minor__gt=0), name="purchase_amount_positive"),
        ]
        indexes = [
            models.Index(fields=["created_at"], condition=Q(status="open"), name="purchase_open"),
            models.Index(fields=["sponsor"], condition=Q(sponsor__isnull=False), name="purchase_of_sponsor"),
            models.Index(
                fields=["finished_at"], condition=Q(top_up__isnull=False), name="purchase_automatic"
            ),
        ]

    def __str__(self) -> str:
        return self.stripe_invoice_id or f"purchase {self.pk}"


class AutoTopUp(models.Model):
    """
    A user's consent to buy a pack automatically when few credits are left, with the terms that the user accepted.

    The terms of a consent never change: new terms are a new consent, and the earlier one is withdrawn.
    """

    class PausedReason(models.TextChoices):
        CARD_DECLINED = "card-declined"
        AUTHENTICATION_REQUIRED = "authentication-required"
        PAYMENT_METHOD_REQUIRED = "payment-method-required"
        CURRENCY_FIXED = "currency-fixed"
        ADDRESS_REQUIRED = "address-required"
        BILLING_REFUSED = "billing-refused"
        NO_CREDITS = "no-credits"
        PACK_CHANGED = "pack-changed"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="auto_top_ups")
    pack = models.ForeignKey("payments.CreditPack", models.PROTECT, related_name="+")
    threshold = models.BigIntegerField(help_text="A pack is bought when fewer credits are available.")
    amount_minor = models.BigIntegerField(help_text="The pack's price that was agreed to.")
    currency = models.CharField(max_length=3)
    bonus_credits = models.BigIntegerField(default=0, help_text="The pack's bonus that was agreed to.")
    monthly_limit_minor = models.BigIntegerField(
        help_text="Automatic purchases in a calendar month (UTC), at most, in minor units."
    )
    consent = models.TextField(help_text="The text that the user has accepted.")
    consented_at = models.DateTimeField()
    withdrawn_at = models.DateTimeField(null=True)
    paused_at = models.DateTimeField(null=True)
    paused_reason = models.CharField(max_length=24, choices=PausedReason, blank=True, default="")
    decline_code = models.CharField(max_length=64, blank=True, default="")
    last_tried_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user"], condition=Q(withdrawn_at=None), name="autotopup_one_per_user"
            ),
            models.CheckConstraint(
                condition=Q(threshold__gt=0, amount_minor__gt=0, monthly_limit_minor__gte=F("amount_minor"))
                & ~Q(consent=""),
                name="autotopup_terms",
            ),
            models.CheckConstraint(
                condition=Q(paused_at=None, paused_reason="") | (~Q(paused_at=None) & ~Q(paused_reason="")),
                name="autotopup_paused_for_a_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"below {self.threshold:,} credits: {self.pack_id}"
