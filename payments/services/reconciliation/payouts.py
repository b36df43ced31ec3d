"""Compares payouts with Stripe's paid invoices, in both directions, and clawbacks with refunds and disputes."""

from collections import Counter
from collections.abc import Iterator

from payments.errors import BillingRefused, RateMissing, reason_of
from payments.models import Payout, Settlement
from payments.services import clawbacks, payouts
from payments.services.reconciliation.findings import Finding, Rule, Window, pages, rows_by
from payments.services.reconciliation.subscriptions import ours_among
from payments.stripe import get_billing_client
from payments.stripe.client import InvoiceState


def compare_payouts(*, window: Window, counts: Counter[str]) -> Iterator[Finding]:
    """Yield paid invoices without a payout, and payouts that differ from their invoice."""
    compared: set[int] = set()
    rows = Payout.objects.select_related("subscription__customer", "purchase__customer")
    for page in pages(get_billing_client().paid_invoices_since(since=window.since)):
        stored = rows_by("stripe_invoice_id", [invoice.invoice_id for invoice in page], rows)
        ours = ours_among(invoice.customer_id for invoice in page)
        for invoice in page:
            payout = stored.get(invoice.invoice_id)
            counts["invoices"] += invoice.is_ours and invoice.customer_id in ours
            if payout is not None:
                compared.add(payout.pk)
                yield from _differences(payout, invoice)
            elif invoice.is_ours and invoice.customer_id in ours:
                yield from _missing_payout(invoice, window)
            elif invoice.is_ours and invoice.collected_minor > 0:
                yield from _unknown_payer(invoice)
    for payout in window.of_payouts(rows).order_by("pk").iterator():
        counts["payouts"] += 1
        if payout.pk not in compared:
            yield from _not_listed(payout)


def compare_part_paid(*, window: Window) -> Iterator[Finding]:
    """Yield partly paid invoices; they pay nothing out until the rest is paid."""
    for page in pages(get_billing_client().part_paid_invoices_since(since=window.since)):
        ours = ours_among(invoice.customer_id for invoice in page)
        for invoice in page:
            if invoice.collected_minor > 0 and invoice.customer_id in ours:
                yield Finding(
                    rule=Rule.INVOICE_WITHOUT_PAYOUT,
                    have="no payout",
                    wanted=f"{invoice.collected_minor} {invoice.currency} collected, the rest "
                    f"{Settlement(invoice.settlement).label}",
                    ids={"invoice": invoice.invoice_id, "customer": invoice.customer_id},
                )


def _missing_payout(invoice: InvoiceState, window: Window) -> Iterator[Finding]:
    ids = {"invoice": invoice.invoice_id, "customer": invoice.customer_id}
    if not payouts.is_of_our_mode(is_live=invoice.is_live):
        yield Finding(rule=Rule.LIVEMODE, have="no payout", wanted=f"livemode {invoice.is_live}", ids=ids)
        return
    if invoice.paid_at is None or invoice.paid_at > window.settled_before:
        return
    wanted = f"{invoice.collected_minor} {invoice.currency} collected at {invoice.paid_at:%Y-%m-%d %H:%M}"
    if not payouts.is_payable(invoice=invoice):
        if invoice.total_minor > 0:
            yield _without_payout(invoice, ids)
        return
    try:
        missing = payouts.credits_for(invoice=invoice, paid_at=invoice.paid_at)
    except RateMissing:
        have = "no payout, because no rate is in force"
        yield Finding(rule=Rule.PAYOUT_MISSING, have=have, wanted=wanted, ids=ids)
        return
    if missing == 0:
        yield _without_payout(invoice, ids)
        return
    have = f"no payout of {missing} credits"
    yield Finding(rule=Rule.PAYOUT_MISSING, have=have, wanted=wanted, ids=ids)


def _without_payout(invoice: InvoiceState, ids: dict[str, str]) -> Finding:
    """Return a finding that no repair can resolve, such as money that Stripe did not collect, or without a period."""
    why = Settlement(invoice.settlement).label
    if invoice.collected_minor > 0:
        why = f"{invoice.collected_minor} {invoice.currency} {why}"
    return Finding(rule=Rule.INVOICE_WITHOUT_PAYOUT, have="no payout", wanted=why, ids=ids)


def _unknown_payer(invoice: InvoiceState) -> Iterator[Finding]:
    """Yield a payment for our product by an unknown customer, unless another deployment created the customer."""
    if get_billing_client().customer_made_for(customer_id=invoice.customer_id):
        return
    yield Finding(
        rule=Rule.PAYER_UNKNOWN,
        have="no customer of ours",
        wanted=f"{invoice.collected_minor} {invoice.currency} collected for our product",
        ids={"invoice": invoice.invoice_id, "customer": invoice.customer_id},
    )


def compare_fraud_warnings(*, window: Window) -> Iterator[Finding]:
    """Yield payments with a card network's fraud warning that are neither refunded nor disputed yet."""
    for page in pages(get_billing_client().fraud_warnings_since(since=window.since)):
        for payout in Payout.objects.paid_by(page).order_by("pk"):
            ids = {"invoice": payout.stripe_invoice_id, "payment": payout.stripe_payment_intent_id}
            have = f"{payout.kept_minor} {payout.currency} are kept"
            yield Finding(rule=Rule.FRAUD_WARNING, have=have, wanted="reviewed, and refunded", ids=ids)


def _not_listed(payout: Payout) -> Iterator[Finding]:
    try:
        invoice = get_billing_client().retrieve_invoice(invoice_id=payout.stripe_invoice_id)
    except BillingRefused as refusal:
        yield Finding(
            rule=Rule.INVOICE_UNKNOWN,
            have=f"{payout.credits} credits paid out",
            wanted=reason_of(refusal),
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
    subscription_id = payout.subscription.stripe_subscription_id if payout.subscription else ""
    period = (invoice.period_start, invoice.period_end) if subscription_id else (None, None)
    for rule, ours, theirs in (
        (Rule.PAYOUT_AMOUNT, str(payout.amount_minor), str(invoice.collected_minor)),
        (Rule.PAYOUT_CURRENCY, payout.currency, invoice.currency),
        (
            Rule.PAYOUT_CUSTOMER,
            f"{payout.customer.stripe_customer_id} {subscription_id}",
            f"{invoice.customer_id} {invoice.subscription_id}",
        ),
        (
            Rule.PAYOUT_PERIOD,
            f"{payout.period_start} to {payout.period_end}",
            f"{period[0]} to {period[1]}",
        ),
        (
            Rule.PAYOUT_PAYMENT,
            " ".join(sorted(payout.payment_ids())),
            " ".join(sorted(invoice.payment_ids)),
        ),
    ):
        if ours != theirs:
            yield _difference(rule, payout, ours, theirs)


def _difference(rule: Rule, payout: Payout, ours: str, theirs: str) -> Finding:
    return Finding(rule=rule, have=ours or "nothing", wanted=theirs or "nothing", ids=_ids(payout))


def _ids(payout: Payout) -> dict[str, str]:
    return {"invoice": payout.stripe_invoice_id, "payout": str(payout.pk)}


def compare_clawbacks(*, window: Window, counts: Counter[str]) -> Iterator[Finding]:
    """Yield payouts whose clawbacks do not match their refunds and disputes."""
    compared: set[int] = set()
    client = get_billing_client()
    for page in pages(client.refunded_or_disputed_since(since=window.returned_since)):
        paid = set(Payout.objects.paid_by(page).values_list("pk", flat=True))
        yield from _clawback_differences(paid - compared, counts)
        compared |= paid
    taken_back = Payout.objects.filter(clawbacks__created_at__gte=window.returned_since)
    older = window.of_payouts(Payout.objects.filter(created_at__lt=window.since))
    ids = taken_back.values_list("pk", flat=True).union(older.values_list("pk", flat=True))
    for page_of_ids in pages(ids):
        yield from _clawback_differences(set(page_of_ids) - compared, counts)


def _clawback_differences(payout_ids: set[int], counts: Counter[str]) -> Iterator[Finding]:
    rows = Payout.objects.filter(pk__in=payout_ids).exclude(stripe_payment_intent_id="")
    for payout in rows.order_by("pk"):
        counts["payments refunded or disputed"] += 1
        returned = clawbacks.read_returned_money(payout.payment_ids(), invoice_id=payout.stripe_invoice_id)
        wanted = clawbacks.credits_to_take(payout=payout, returned=returned)
        taken = payout.credits_taken_back()
        experience = clawbacks.experience_to_take(payout=payout, returned=returned)
        if taken != wanted or any(experience.values()):
            left = ", ".join(f"{amount} {track}" for track, amount in experience.items())
            yield Finding(
                rule=Rule.CLAWBACK_SUM,
                have=f"{taken} of {payout.credits} credits taken back; experience still to take: {left}",
                wanted=f"{returned.refunded_minor} refunded, {returned.disputed_minor} disputed and "
                f"{returned.off_stripe_minor} returned outside of Stripe of "
                f"{payout.amount_minor} {payout.currency}, which is {wanted} credits",
                ids={"payment": payout.stripe_payment_intent_id, "invoice": payout.stripe_invoice_id},
            )
