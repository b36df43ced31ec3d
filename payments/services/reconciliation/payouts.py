"""Compares payouts with Stripe's paid invoices, in both directions, and clawbacks with refunds and disputes."""

from collections import Counter
from collections.abc import Iterator

from django.db.models import Q

from payments.errors import BillingRefused, RateMissing
from payments.models import Payout
from payments.services import clawbacks, payouts
from payments.services.reconciliation.findings import Finding, Rule, Window, pages, rows_by
from payments.services.reconciliation.subscriptions import ours_among
from payments.stripe import get_billing_client
from payments.stripe.client import InvoiceState


def compare_payouts(*, window: Window, counts: Counter[str]) -> Iterator[Finding]:
    """Yield paid invoices without a payout, and payouts that differ from their invoice."""
    compared: set[int] = set()
    rows = Payout.objects.select_related("subscription__customer")
    for page in pages(get_billing_client().paid_invoices_since(since=window.since)):
        stored = rows_by("stripe_invoice_id", [invoice.invoice_id for invoice in page], rows)
        ours = ours_among(invoice.customer_id for invoice in page)
        for invoice in page:
            payout = stored.get(invoice.invoice_id)
            counts["invoices"] += invoice.customer_id in ours
            if payout is not None:
                compared.add(payout.pk)
                yield from _differences(payout, invoice)
            elif invoice.customer_id in ours:
                yield from _missing_payout(invoice, window)
    for payout in rows.filter(created_at__gte=window.since).order_by("pk").iterator():
        counts["payouts"] += 1
        if payout.pk not in compared:
            yield from _not_listed(payout)


def _missing_payout(invoice: InvoiceState, window: Window) -> Iterator[Finding]:
    ids = {"invoice": invoice.invoice_id, "customer": invoice.customer_id}
    if not payouts.is_of_our_mode(is_live=invoice.is_live):
        yield Finding(rule=Rule.LIVEMODE, have="no payout", wanted=f"livemode {invoice.is_live}", ids=ids)
        return
    if invoice.paid_at is None or invoice.paid_at > window.settled_before:
        return
    if not payouts.is_payable(invoice=invoice):
        return
    try:
        missing = payouts.credits_for(invoice=invoice, paid_at=invoice.paid_at)
        have = f"no payout of {missing} credits"
    except RateMissing:
        missing, have = None, "no payout, because no rate is in force"
    if missing == 0:
        return
    yield Finding(
        rule=Rule.PAYOUT_MISSING,
        have=have,
        wanted=f"{invoice.collected_minor} {invoice.currency} collected at {invoice.paid_at:%Y-%m-%d %H:%M}",
        ids=ids,
    )


def _not_listed(payout: Payout) -> Iterator[Finding]:
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
    yield from _differences(payout, invoice)


def _differences(payout: Payout, invoice: InvoiceState) -> Iterator[Finding]:
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


def compare_clawbacks(*, window: Window, counts: Counter[str]) -> Iterator[Finding]:
    """Yield payouts whose clawbacks do not match their refunds and disputes."""
    compared: set[str] = set()
    client = get_billing_client()
    for page in pages(client.refunded_or_disputed_since(since=window.returned_since)):
        yield from _clawback_differences(Q(stripe_payment_intent_id__in=set(page) - compared), counts)
        compared |= set(page)
    taken_back = Payout.objects.filter(clawbacks__created_at__gte=window.returned_since)
    others = taken_back.exclude(stripe_payment_intent_id__in=compared).values_list("pk", flat=True).distinct()
    for page_of_ids in pages(others):
        yield from _clawback_differences(Q(pk__in=page_of_ids), counts)


def _clawback_differences(chosen: Q, counts: Counter[str]) -> Iterator[Finding]:
    for payout in Payout.objects.filter(chosen).exclude(stripe_payment_intent_id="").order_by("pk"):
        counts["payments refunded or disputed"] += 1
        returned = get_billing_client().returned_money(payment_intent_id=payout.stripe_payment_intent_id)
        wanted = clawbacks.credits_to_take(payout=payout, returned=returned)
        taken = payout.credits_taken_back()
        experience = clawbacks.experience_to_take(payout=payout, returned=returned)
        if taken != wanted or any(experience.values()):
            left = ", ".join(f"{amount} {track}" for track, amount in experience.items())
            yield Finding(
                rule=Rule.CLAWBACK_SUM,
                have=f"{taken} of {payout.credits} credits taken back; experience still to take: {left}",
                wanted=f"{returned.refunded_minor} refunded and {returned.disputed_minor} disputed of "
                f"{payout.amount_minor} {payout.currency}, which is {wanted} credits",
                ids={"payment": payout.stripe_payment_intent_id, "invoice": payout.stripe_invoice_id},
            )
