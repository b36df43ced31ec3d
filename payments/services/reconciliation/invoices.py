"""Paid invoices against payouts, both ways."""

from collections import Counter
from collections.abc import Iterator

from payments.errors import BillingRefused, RateMissing
from payments.models import Payout
from payments.services import payouts
from payments.services.reconciliation import customers
from payments.services.reconciliation.findings import Finding, Rule, Window, pages
from payments.stripe.client import get_billing_client
from payments.stripe.states import InvoiceState


def compare(*, window: Window, counts: Counter[str]) -> Iterator[Finding]:
    """Yield paid invoices without a payout, and payouts that their invoice does not bear out."""
    compared: set[int] = set()
    for page in pages(get_billing_client().paid_invoices_since(since=window.since)):
        known = _payouts_of(page)
        ours = customers.ours_among(invoice.customer_id for invoice in page)
        for invoice in page:
            payout = known.get(invoice.invoice_id)
            counts["invoices"] += invoice.customer_id in ours
            if payout is not None:
                compared.add(payout.pk)
                yield from _unlike(payout, invoice)
            elif invoice.customer_id in ours:
                yield from _without_payout(invoice, window)
    recent = Payout.objects.filter(created_at__gte=window.since).select_related("subscription__customer")
    for payout in recent.order_by("pk").iterator():
        counts["payouts"] += 1
        if payout.pk not in compared:
            yield from _looked_up(payout)


def _payouts_of(page: list[InvoiceState]) -> dict[str, Payout]:
    named = [invoice.invoice_id for invoice in page]
    found = Payout.objects.filter(stripe_invoice_id__in=named).select_related("subscription__customer")
    return {payout.stripe_invoice_id: payout for payout in found}


def _without_payout(invoice: InvoiceState, window: Window) -> Iterator[Finding]:
    ids = {"invoice": invoice.invoice_id, "customer": invoice.customer_id}
    if not payouts.is_of_our_mode(is_live=invoice.is_live):
        yield Finding(rule=Rule.LIVEMODE, have="no payout", wanted=f"livemode {invoice.is_live}", ids=ids)
        return
    if invoice.paid_at is None or invoice.paid_at > window.settled_before:
        return
    if not payouts.is_payable(invoice=invoice):
        return
    try:
        worth = payouts.worth_of(invoice=invoice, paid_at=invoice.paid_at)
        missing = f"no payout of {worth} credits"
    except RateMissing:
        worth, missing = None, "no payout, for no rate is in force"
    if worth == 0:
        return
    yield Finding(
        rule=Rule.PAYOUT_MISSING,
        have=missing,
        wanted=f"{invoice.collected_minor} {invoice.currency} collected at {invoice.paid_at:%Y-%m-%d %H:%M}",
        ids=ids,
    )


def _looked_up(payout: Payout) -> Iterator[Finding]:
    """Read the invoice of a payout that is not among the recent paid ones."""
    try:
        invoice = get_billing_client().retrieve_invoice(invoice_id=payout.stripe_invoice_id)
    except BillingRefused as refusal:
        yield Finding(
            rule=Rule.INVOICE_UNKNOWN,
            have=f"{payout.credits} credits paid out",
            wanted=str(refusal.members.get("reason", refusal.code)),
            ids=_ids(payout),
        )
        return
    yield from _unlike(payout, invoice)


def _unlike(payout: Payout, invoice: InvoiceState) -> Iterator[Finding]:
    if invoice.status != "paid":
        yield _difference(Rule.INVOICE_NOT_PAID, payout, f"{payout.credits} credits", invoice.status)
        return
    if not payouts.is_of_our_mode(is_live=invoice.is_live):
        yield _difference(Rule.LIVEMODE, payout, "a payout", f"livemode {invoice.is_live}")
    subscription = payout.subscription
    for rule, ours, theirs in (
        (Rule.PAYOUT_AMOUNT, str(payout.amount_minor), str(invoice.collected_minor)),
        (Rule.PAYOUT_CURRENCY, payout.currency, invoice.currency),
        (
            Rule.PAYOUT_CUSTOMER,
            f"{subscription.customer.stripe_customer_id} {subscription.stripe_subscription_id}",
            f"{invoice.customer_id} {invoice.subscription_id}",
        ),
        (
            Rule.PAYOUT_PERIOD,
            f"{payout.period_start} to {payout.period_end}",
            f"{invoice.period_start} to {invoice.period_end}",
        ),
        (Rule.PAYOUT_PAYMENT, payout.stripe_payment_intent_id, invoice.payment_intent_id),
    ):
        if ours != theirs:
            yield _difference(rule, payout, ours, theirs)


def _difference(rule: Rule, payout: Payout, ours: str, theirs: str) -> Finding:
    return Finding(rule=rule, have=ours or "nothing", wanted=theirs or "nothing", ids=_ids(payout))


def _ids(payout: Payout) -> dict[str, str]:
    return {"invoice": payout.stripe_invoice_id, "payout": str(payout.pk)}
