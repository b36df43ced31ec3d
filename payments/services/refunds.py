"""
Refunds that staff ask for: shown first with the credits they take back, approved, stored, and then sent to Stripe.

1. `preview_of` reads what Stripe has returned of the payment, and computes what the refund would take back.
2. `request` asks for approval; carried out, it commits a pending `Refund`, whose id is the idempotency key.
3. `send` has Stripe return the money, in a worker and again until Stripe answers.

The credits are taken back by `clawbacks`, when Stripe's event about the refund is applied.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import F, QuerySet
from django.utils import timezone

from credits import queries as credits_queries
from gateway.common.db import Sweep
from gateway.common.errors import DomainError
from gateway.common.tasks import enqueue_on_commit
from gateway.staff import approval_kinds, approvals
from gateway.staff.approval_kinds import REFUNDS, Done, Kind, RequestOutdated
from gateway.staff.models import ApprovalRequest
from payments.amounts import display_amount
from payments.errors import BillingUnavailable, NotRefundable
from payments.models import Payout, Refund
from payments.services import clawbacks
from payments.stripe import get_billing_client
from rewards import queries as rewards_queries
from users.models import User

_Status = Refund.Status
_MAX_SENT = 100


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What a refund of `amount_minor` does; money in minor units of the payout's currency."""

    payout: Payout
    amount_minor: int
    returned_minor: int
    taken_before: int
    credits: int
    available: int
    debt_limit: int

    @property
    def available_after(self) -> int:
        return self.available - self.credits

    @property
    def owed_after(self) -> int:
        """Return the credits that were spent already and that the person then owes."""
        return max(0, -self.available_after)

    @property
    def ends_allowance(self) -> bool:
        return self.taken_before + self.credits >= self.payout.credits

    def shown(self, amount_minor: int) -> str:
        return display_amount(amount_minor=amount_minor, currency=self.payout.currency)


def preview_of(*, payout: Payout, amount_minor: int | None, now: datetime) -> Preview:
    """
    Return what a refund of so much, or of all that is left, would do; Stripe is asked what was returned so far.

    Raises:
        NotRefundable: no payment, or less than that, is left.
        BillingUnavailable: Stripe does not answer.
    """
    if not payout.is_refundable:
        raise NotRefundable("No payment at Stripe brought this money.", left=0)
    returned = get_billing_client().returned_money(payment_intent_id=payout.stripe_payment_intent_id)
    left = payout.charged_minor - returned.total_minor
    if left <= 0:
        raise NotRefundable("All of this payment has been returned.", left=0)
    amount = left if amount_minor is None else amount_minor
    if not 0 < amount <= left:
        shown = display_amount(amount_minor=left, currency=payout.currency)
        raise NotRefundable(f"Of this payment {shown} is left to refund.", left=left)
    after = replace(returned, refunded_minor=returned.refunded_minor + amount)
    taken_before = payout.credits_taken_back()
    return Preview(
        payout=payout,
        amount_minor=amount,
        returned_minor=returned.total_minor,
        taken_before=taken_before,
        credits=clawbacks.credits_to_take(payout=payout, returned=after) - taken_before,
        available=credits_queries.balance_of(payout.user).available,
        debt_limit=rewards_queries.current_rewards(user=payout.user, now=now).benefits.debt_limit,
    )


def request(*, preview: Preview, actor: User, reason: str, key: str) -> ApprovalRequest:
    """
    Ask for the refund as it was shown.

    Raises:
        PermissionDenied, ReasonRequired, AboveCeiling, RequestConflict, DomainError: see `approvals.ask`.
    """
    payout = preview.payout
    return approvals.ask(
        kind=REFUND,
        actor=actor,
        reason=reason,
        key=key,
        row=payout,
        person=payout.user,
        amount=preview.amount_minor,
        payload={"amount_minor": preview.amount_minor, "credits_taken_back": preview.taken_before},
        changes={
            "refunded": (
                preview.shown(preview.returned_minor),
                preview.shown(preview.returned_minor + preview.amount_minor),
            ),
            "available credits": (f"{preview.available:,}", f"{preview.available_after:,}"),
        },
    )


def _store(approval: ApprovalRequest) -> Done:
    # Of two refunds at once the second sees the first.
    payout = Payout.objects.select_for_update(of=("self",)).get(pk=approval.object_id)
    if payout.refunds.filter(status=_Status.PENDING).exists():
        raise RequestOutdated("Another refund of this payment waits for Stripe. Wait until it is done.")
    if approval.payload["credits_taken_back"] != payout.credits_taken_back():
        raise RequestOutdated(
            "Money of this payment was returned meanwhile. Look at the payment and ask again."
        )
    refund = Refund.objects.create(
        payout=payout,
        amount_minor=approval.payload["amount_minor"],
        approval=approval,
        created_at=timezone.now(),
    )
    enqueue_on_commit("payments.send_refund", refund_id=str(refund.pk))
    shown = display_amount(amount_minor=refund.amount_minor, currency=payout.currency)
    return Done(f"{shown} is on its way to Stripe; the refund's row says when it is done.", payout, refund)


REFUND = approval_kinds.register(
    Kind(
        name="refund_payout",
        title="Refund a payment",
        asks="payments.refund_payout",
        decides="payments.decide_refund",
        carry_out=_store,
        pool=REFUNDS,
    )
)


def send(*, refund_id: str, now: datetime) -> Refund:
    """
    Have Stripe return the money, once however often it is sent; a refund that is done is left alone.

    Raises:
        BillingUnavailable: Stripe does not answer; the refund goes on waiting.
        BillingRefused: Stripe refuses, and the refund is closed as refused.
    """
    refund = Refund.objects.select_related("payout").get(pk=refund_id)
    if refund.status != _Status.PENDING:
        return refund
    waiting = Refund.objects.filter(pk=refund.pk, status=_Status.PENDING)
    waiting.update(attempts=F("attempts") + 1)
    try:
        made = get_billing_client().create_refund(
            payment_intent_id=refund.payout.stripe_payment_intent_id,
            amount_minor=refund.amount_minor,
            key=str(refund.pk),
        )
    except DomainError as error:
        _keep_error(waiting, error, now=now)
        raise
    waiting.update(status=_Status.DONE, outcome=made, last_error="", finished_at=now)
    refund.refresh_from_db()
    return refund


def _keep_error(waiting: QuerySet[Refund], error: DomainError, *, now: datetime) -> None:
    """Say on the row what went wrong; what a repeat cannot mend closes it."""
    waiting.update(last_error=error.detail)
    if not error.retryable:
        reason = str(error.members.get("reason", error.code))
        waiting.update(status=_Status.REFUSED, outcome=reason[:255], finished_at=now)


def send_pending(*, now: datetime) -> int:
    """Send what waits, as after a lost message; while Stripe is away, all wait for the next time."""
    sweep = Sweep("refund")
    pending = Refund.objects.filter(status=_Status.PENDING).order_by("created_at")
    try:
        for refund_id in pending.values_list("pk", flat=True)[:_MAX_SENT]:
            with sweep.item(refund_id):
                send(refund_id=str(refund_id), now=now)
    except BillingUnavailable:
        pass
    return sweep.succeeded
