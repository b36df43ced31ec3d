"""Money of payouts that was returned, and refunds by staff."""

import uuid
from typing import Any, ClassVar

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from gateway.common.models import APPEND_ONLY


class MoneyReturn(models.Model):
    """
    A change of the money returned from a payout, as read from Stripe; negative if money was reinstated.

    The sums of a payout's rows are its `refunded_minor` and `disputed_minor`, so both are known for any past time.
    """

    payout = models.ForeignKey("payments.Payout", models.PROTECT, related_name="money_returns")
    refunded_minor = models.BigIntegerField(help_text="By refunds, including tax.")
    disputed_minor = models.BigIntegerField(help_text="By disputes, including tax.")
    created_at = models.DateTimeField(db_default=Now(), db_index=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=~Q(refunded_minor=0, disputed_minor=0), name="moneyreturn_not_empty"
            )
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [APPEND_ONLY]

    def __str__(self) -> str:
        return f"{self.payout_id}: {self.refunded_minor:+} refunded, {self.disputed_minor:+} disputed"


class Refund(models.Model):
    """
    A refund to the card that paid for a payout, by staff or by its payer; its id is the idempotency key at Stripe.

    The refund itself takes back no credits. Stripe's event about it does, also for refunds made in Stripe's dashboard.
    A bank may return the money weeks after the refund was done; it is back on the Stripe account then.
    Until the credits are taken back, `hold` keeps the credits of a purchase that its payer undid from being spent.
    """

    class Status(models.TextChoices):
        PENDING = "pending", "waits for Stripe"
        DONE = "done", "refunded"
        REFUSED = "refused", "refused by Stripe"
        FAILED = "failed", "did not reach the payer"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    payout = models.ForeignKey("payments.Payout", models.PROTECT, related_name="refunds")
    amount_minor = models.BigIntegerField(help_text="In the payout's currency.")
    # Payment intents, each with the amount to refund; chosen once, before the first request to Stripe.
    parts: Any = models.JSONField(null=True, editable=False)
    # Has the requester, the reason and the approver; empty if the payer undid the purchase.
    approval = models.OneToOneField(
        "gateway_admin.ApprovalRequest", models.PROTECT, null=True, related_name="+"
    )
    hold = models.OneToOneField(
        "credits.CreditHold",
        models.PROTECT,
        null=True,
        related_name="+",
        help_text="The credits of a purchase that its payer undid, held until they are taken back.",
    )
    status = models.CharField(max_length=8, choices=Status, default=Status.PENDING)
    # The refund's id at Stripe, or the code of Stripe's refusal.
    outcome = models.CharField(max_length=255, blank=True, default="", db_index=True)
    attempts = models.PositiveIntegerField(default=0)
    last_error = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        permissions = [
            ("send_refund", "Can have a refund sent to Stripe again"),
            ("export_refund", "Can export refunds"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(amount_minor__gt=0), name="refund_amount_positive"),
            models.CheckConstraint(
                condition=Q(approval__isnull=False, hold=None) | Q(approval=None, hold__isnull=False),
                name="refund_by_staff_or_payer",
            ),
            models.CheckConstraint(
                condition=Q(status="pending", finished_at=None)
                | ~Q(status="pending") & Q(finished_at__isnull=False) & ~Q(outcome=""),
                name="refund_finished_with_outcome",
            ),
            models.UniqueConstraint(
                fields=["payout"], condition=Q(status="pending"), name="refund_one_pending_per_payout"
            ),
        ]

    def __str__(self) -> str:
        return f"refund of {self.payout}"
