"""
Refunds by staff: previewed with the credits that they take back, approved, stored, and then sent to Stripe. `send` also
sends those of purchases that their payer undid (`undo`).

1. `preview_of` reads the money already returned from Stripe, and computes the credits that the refund would take back.
2. `request` requests approval; once approved, a pending `Refund` is committed, whose id is the idempotency key.
3. `send` sends the refund to Stripe from a worker, and retries until Stripe responds. If an invoice was paid by several
   payments, the newest is refunded first.

`clawbacks` takes the credits back when Stripe's event about the refund is applied.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from django.db import transaction
from django.db.models import F, QuerySet

from credits.models import CreditAccount
from credits.services import holds
from gateway.common import clock
from gateway.common.errors import DomainError
from gateway.common.tasks import Sweep, enqueue_on_commit
from gateway.staff import approval_kinds, approvals
from gateway.staff.approval_kinds import REFUNDS, Done, Kind, RequestOutdated
from gateway.staff.models import ApprovalRequest
from payments.amounts import display_amount
from payments.errors import BillingUnavailable, NotRefundable, is_lasting, reason_of
from payments.models import Payout, Refund
from payments.services import clawbacks
from payments.stripe import get_billing_client
from rewards import queries as rewards_queries
from users.models import User

_Status = Refund.Status
_MAX_SENT = 100


@dataclass(frozen=True, kw_only=True)
class Preview:
    """The effect of a refund of `amount_minor`; money is in minor units of the payout's currency."""

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
        """Return the debt of the person, or the sponsor, after the refund, because the credits were already spent."""
        return max(0, -self.available_after)

    @property
    def ends_allowance(self) -> bool:
        if self.payout.subscription_id is None:
            return False
        return self.taken_before + self.credits >= self.payout.credits

    def shown(self, amount_minor: int) -> str:
        return display_amount(amount_minor=amount_minor, currency=self.payout.currency)


def preview_of(*, payout: Payout, amount_minor: int | None, now: datetime) -> Preview:
    """
    Return the effect of a refund of `amount_minor` (None: all that is left). Reads the returned money from Stripe.

    Raises:
        NotRefundable: there is no payment, or less than `amount_minor` is left.
        BillingUnavailable: Stripe does not respond.
    """
    if not payout.is_refundable:
        raise NotRefundable("This money did not come from a payment at Stripe.", left=0)
    returned = clawbacks.read_returned_money(payout.payment_ids(), invoice_id=payout.stripe_invoice_id)
    left = payout.charged_minor - returned.total_minor
    if left <= 0:
        raise NotRefundable("All of this payment has been returned.", left=0)
    amount = left if amount_minor is None else amount_minor
    if not 0 < amount <= left:
        shown = display_amount(amount_minor=left, currency=payout.currency)
        raise NotRefundable(f"At most {shown} of this payment can be refunded.", left=left)
    after = replace(returned, refunded_minor=returned.refunded_minor + amount)
    taken_before = payout.credits_taken_back()
    return Preview(
        payout=payout,
        amount_minor=amount,
        returned_minor=returned.total_minor,
        taken_before=taken_before,
        credits=clawbacks.credits_to_take(payout=payout, returned=after) - taken_before,
        available=CreditAccount.objects.get(entries=payout.entry_id).available,
        # Sponsors have no debt limit: a sponsor that owes credits pays for no calls.
        debt_limit=0 if payout.sponsor_id else rewards_queries.debt_limit_of(user=payout.user, now=now),
    )


def request(*, preview: Preview, actor: User, reason: str, key: str) -> ApprovalRequest:
    """
    Request approval of the refund as previewed.

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
    # The lock serialises concurrent refunds of one payment.
    payout = Payout.objects.select_for_update(of=("self",)).get(pk=approval.object_id)
    if payout.refunds.filter(status=_Status.PENDING).exists():
        raise RequestOutdated("Another refund of this payment is in progress. Wait until it is done.")
    if approval.payload["credits_taken_back"] != payout.credits_taken_back():
        raise RequestOutdated(
            "Money of this payment was returned in the meantime. Review the payment and request again."
        )
    refund = Refund.objects.create(
        payout=payout,
        amount_minor=approval.payload["amount_minor"],
        approval=approval,
        created_at=clock.now(),
    )
    enqueue_on_commit("payments.send_refund", refund_id=str(refund.pk))
    shown = display_amount(amount_minor=refund.amount_minor, currency=payout.currency)
    return Done(f"The refund of {shown} was sent to Stripe; its row shows when it is done.", payout, refund)


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
    Send the refund to Stripe, which refunds it once; a finished refund is left unchanged.

    Raises:
        BillingUnavailable: Stripe does not respond; the refund stays pending.
        BillingRefused: Stripe refuses; the refund is closed as refused.
    """
    refund = Refund.objects.select_related("payout").get(pk=refund_id)
    if refund.status != _Status.PENDING:
        return refund
    waiting = Refund.objects.filter(pk=refund.pk, status=_Status.PENDING)
    waiting.update(attempts=F("attempts") + 1)
    made: list[str] = []
    try:
        for number, (intent, amount) in enumerate(_parts_of(refund)):
            key = f"{refund.pk}:{number}" if number else str(refund.pk)
            made.append(
                get_billing_client().create_refund(payment_intent_id=intent, amount_minor=amount, key=key)
            )
    except DomainError as error:
        _keep_error(waiting, error, made=made, now=now)
        raise
    waiting.update(status=_Status.DONE, outcome=" ".join(made), last_error="", finished_at=now)
    refund.refresh_from_db()
    return refund


def _parts_of(refund: Refund) -> list[tuple[str, int]]:
    """Return the payments to refund with their amounts, newest first; chosen once, so that a retry sends the same."""
    if refund.parts is None:
        parts = _choose_parts(refund.payout.payment_ids()[::-1], refund.amount_minor)
        Refund.objects.filter(pk=refund.pk, parts__isnull=True).update(parts=parts)
        refund.refresh_from_db(fields=["parts"])
    return [(intent, amount) for intent, amount in refund.parts]


def _choose_parts(payment_intent_ids: list[str], amount_minor: int) -> list[tuple[str, int]]:
    """
    Divide the amount among the payments, in this order, up to what is left of each.

    If too little is left in total, the last part is too large, and Stripe refuses it.
    """
    if len(payment_intent_ids) == 1:
        return [(payment_intent_ids[0], amount_minor)]
    client, parts, missing = get_billing_client(), [], amount_minor
    for intent in payment_intent_ids:
        returned = client.returned_money(payment_intent_id=intent).total_minor
        part = min(missing, client.paid_with(payment_intent_id=intent) - returned)
        if part > 0:
            parts.append((intent, part))
            missing -= part
    if missing:
        intent, part = parts.pop() if parts else (payment_intent_ids[-1], 0)
        parts.append((intent, part + missing))
    return parts


@transaction.atomic(durable=True)
def _keep_error(waiting: QuerySet[Refund], error: DomainError, *, made: list[str], now: datetime) -> None:
    """Store the error on the row; an error that is not retryable closes the refund, and releases its hold."""
    done = f" Refunded before that: {' '.join(made)}." if made else ""
    waiting.update(last_error=f"{error.detail}{done}")
    if not is_lasting(error):
        return
    hold_id = waiting.values_list("hold_id", flat=True).first()
    if waiting.update(status=_Status.REFUSED, outcome=reason_of(error)[:255], finished_at=now) and hold_id:
        holds.release(hold_id=hold_id)


def send_pending(*, now: datetime) -> int:
    """Send pending refunds, such as after a lost message. While Stripe is unavailable, all wait for the next sweep."""
    sweep = Sweep("refund")
    pending = Refund.objects.filter(status=_Status.PENDING).order_by("created_at")
    try:
        for refund_id in pending.values_list("pk", flat=True)[:_MAX_SENT]:
            with sweep.item(refund_id):
                send(refund_id=str(refund_id), now=now)
    except BillingUnavailable:
        pass
    return sweep.succeeded
