"""Converts Stripe's objects to our values, for the API version in `lookups.API_VERSION`."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from payments.errors import WebhookRefused
from payments.models import Settlement, Subscription
from payments.stripe.client import (
    BalanceTransaction,
    CustomerState,
    InvoiceState,
    InvoiceSummary,
    ReceivedEvent,
    SubscriptionState,
)

# The billing reasons of invoices for a period.
_PERIOD_REASONS = ("subscription_create", "subscription_cycle")


def customer_state(customer: Any) -> CustomerState:
    metadata = customer.metadata.to_dict() if customer.metadata else {}
    return CustomerState(
        customer_id=customer.id,
        user_id=metadata.get("user", ""),
        profile_address=metadata.get("address", ""),
        created_at=_time(customer.created),
        is_live=bool(customer.livemode),
    )


def subscription_state(
    subscription: Any,
    *,
    items: Sequence[Any],
    product_id: str,
    client_secret: str = "",
    decline_code: str = "",
    is_processing: bool = False,
    open_minor: int = 0,
) -> SubscriptionState:
    """Read a subscription with all of its `items`. Without an item of ours, the period is that of another item."""
    ours = [item for item in items if id_of(item.price.product) == product_id]
    item = (ours or items)[0]
    pause = getattr(subscription, "pause_collection", None)
    return SubscriptionState(
        subscription_id=subscription.id,
        customer_id=id_of(subscription.customer),
        item_id=ours[0].id if ours else "",
        other_item_ids=tuple(item.id for item in ours[1:]),
        is_ours=bool(ours),
        is_shared=len(ours) < len(items),
        is_plain=len(ours) == 1 and _quantity(ours[0]) == 1,
        status=subscription.status,
        # Tiered and metered prices have no amount; only staff can create them, in Stripe's dashboard.
        amount_minor=sum(int(item.price.unit_amount or 0) * _quantity(item) for item in ours),
        currency=subscription.currency,
        current_period_start=_time(item.current_period_start),
        current_period_end=_time(item.current_period_end),
        cancels_at_period_end=_ends_with_period(subscription, item),
        cancels_at=_time_or_none(getattr(subscription, "cancel_at", None)),
        is_resting=pause is not None,
        rests_until=_time_or_none(getattr(pause, "resumes_at", None)),
        is_scheduled=bool(getattr(subscription, "schedule", None)),
        interval=_interval_of(item),
        is_invoiced=getattr(subscription, "collection_method", "") == "send_invoice",
        latest_invoice=_latest_settlement(subscription),
        ended_at=_time_or_none(subscription.ended_at),
        latest_invoice_id=id_of(subscription.latest_invoice),
        payment_client_secret=client_secret,
        decline_code=decline_code,
        is_processing=is_processing,
        open_minor=open_minor,
    )


def _interval_of(item: Any) -> str:
    """Return the time between two invoices, such as `month` or `3 months`."""
    recurring = getattr(item.price, "recurring", None)
    if recurring is None:
        return Subscription.MONTHLY
    count = int(recurring.interval_count)
    return str(recurring.interval) if count == 1 else f"{count} {recurring.interval}s"


def _quantity(item: Any) -> int:
    """Return an item's quantity; 1 for metered items, which have none."""
    quantity = getattr(item, "quantity", None)
    return 1 if quantity is None else int(quantity)


def _ends_with_period(subscription: Any, item: Any) -> bool:
    """Return whether no further period is billed, by the flag or by an end date, which Stripe's portal sets."""
    ends_at = getattr(subscription, "cancel_at", None)
    return bool(subscription.cancel_at_period_end) or (
        ends_at is not None and int(ends_at) <= int(item.current_period_end)
    )


def settlement_of(invoice: Any) -> Settlement:
    """Return how an invoice was settled. Of several ways, a payment at Stripe wins, then one outside of Stripe."""
    by_status = {"void": Settlement.VOID, "uncollectible": Settlement.UNCOLLECTIBLE, "paid": None}
    if invoice.status not in by_status:
        return _waits_for(invoice)
    settled = by_status[invoice.status]
    if settled is not None:
        return settled
    off_stripe = getattr(invoice, "amount_paid_off_stripe", None) or 0
    if invoice.amount_paid > off_stripe:
        return Settlement.COLLECTED
    if off_stripe:
        return Settlement.OFF_STRIPE
    if invoice.total <= 0:
        # Credit for earlier payments, such as after a lower price, covers the invoice; else nothing was due.
        is_covered = any(line.amount < 0 for line in invoice.lines.data)
        return Settlement.BALANCE if is_covered else Settlement.FREE
    if invoice.pre_payment_credit_notes_amount:
        return Settlement.CREDIT_NOTE
    return Settlement.BALANCE if invoice.starting_balance < 0 else Settlement.CARRIED


def _waits_for(invoice: Any) -> Settlement:
    """Return what a draft or open invoice waits for."""
    tax = getattr(invoice, "automatic_tax", None)
    if tax is not None and tax.enabled and tax.status == "requires_location_inputs":
        return Settlement.ADDRESS_MISSING
    return Settlement.STUCK if getattr(invoice, "last_finalization_error", None) else Settlement.WAITING


def _latest_settlement(subscription: Any) -> str:
    """Return how the latest invoice for a period was settled; invoices of changes during a period do not count."""
    invoice = subscription.latest_invoice
    if invoice is None or isinstance(invoice, str):
        return ""
    settled = settlement_of(invoice)
    is_of_period = invoice.billing_reason in _PERIOD_REASONS
    return settled if is_of_period or settled in {*Settlement.waiting(), Settlement.COLLECTED} else ""


def invoice_state(
    invoice: Any, *, lines: Sequence[Any], payments: Sequence[Any], product_id: str
) -> InvoiceState:
    """Read an invoice with all of its `lines` and `payments`."""
    intents = payment_intents_of(payments)
    ours = [line for line in lines if product_of(line) == product_id]
    period = _period_of(ours)
    collected = max(0, invoice.amount_paid - (getattr(invoice, "amount_paid_off_stripe", None) or 0))
    part = _part_of(collected, ours=sum(map(_charged, ours)), all_lines=sum(map(_charged, lines)))
    # If a credit balance paid a part of the invoice, the tax is divided in proportion.
    tax = part * _tax_of(invoice) // invoice.total if invoice.total > 0 else 0
    return InvoiceState(
        invoice_id=invoice.id,
        customer_id=id_of(invoice.customer),
        subscription_id=_subscription_of(invoice),
        is_ours=bool(ours),
        status=invoice.status or "",
        billing_reason=invoice.billing_reason or "",
        currency=invoice.currency,
        collected_minor=part - tax,
        tax_minor=tax,
        other_minor=collected - part,
        period_start=_time_or_none(period.start) if period else None,
        period_end=_time_or_none(period.end) if period else None,
        payment_intent_id=intents[0] if intents else "",
        further_payment_ids=tuple(intents[1:]),
        settlement=settlement_of(invoice),
        total_minor=int(invoice.total),
        paid_at=_time_or_none(invoice.status_transitions.paid_at),
        is_live=bool(invoice.livemode),
        number=invoice.number or "",
        country=_country_of(invoice),
        operation=_operation_of(invoice),
    )


def _country_of(invoice: Any) -> str:
    address = getattr(invoice, "customer_address", None)
    return (address.country or "") if address else ""


def balance_transaction(row: Any) -> BalanceTransaction:
    """Read a movement of the balance with its expanded source."""
    source = row.source if not isinstance(row.source, str | None) else None
    amount = int(row.amount)
    currency = getattr(source, "currency", row.currency)
    # If Stripe has converted the amount, the source has it in the payment's currency.
    charged = amount if source is None or currency == row.currency else int(source.amount)
    return BalanceTransaction(
        transaction_id=row.id,
        type=row.type,
        category=row.reporting_category,
        currency=row.currency,
        amount_minor=amount,
        fee_minor=int(row.fee),
        net_minor=int(row.net),
        created_at=_time(row.created),
        payment_intent_id=id_of(getattr(source, "payment_intent", None)),
        charged_minor=abs(charged) if amount > 0 else -abs(charged),
        charged_currency=currency,
    )


def _operation_of(invoice: Any) -> str:
    metadata = invoice.metadata.to_dict() if invoice.metadata else {}
    return str(metadata.get("operation", ""))


def invoice_summary(invoice: Any) -> InvoiceSummary:
    return InvoiceSummary(
        invoice_id=invoice.id,
        number=invoice.number or "",
        status=invoice.status or "",
        currency=invoice.currency,
        total_minor=invoice.total,
        tax_minor=_tax_of(invoice),
        open_minor=invoice.amount_remaining if invoice.status == "open" else 0,
        created_at=_time(invoice.created),
        page_url=invoice.hosted_invoice_url or "",
        pdf_url=invoice.invoice_pdf or "",
    )


def _tax_of(invoice: Any) -> int:
    return sum(int(tax.amount) for tax in invoice.total_taxes or [])


def payment_intents_of(payments: Sequence[Any]) -> list[str]:
    """Return the payment intents that paid an invoice, the default one first; else the one that is to pay it."""
    paid = [row for row in payments if row.status == "paid"]
    rows = sorted(paid or payments, key=lambda row: not row.is_default)
    intents = [id_of(getattr(row.payment, "payment_intent", None)) for row in rows]
    named = [intent for intent in intents if intent]
    return named if paid else named[:1]


def received_event(event: dict[str, Any]) -> ReceivedEvent:
    """
    Read an event.

    Raises:
        WebhookRefused: a member is missing or of the wrong kind.
    """
    try:
        return ReceivedEvent(
            event_id=_text(event["id"]),
            type=_text(event["type"]),
            api_version=str(event.get("api_version") or ""),
            object_id=_text(event["data"]["object"]["id"]),
            created_at=_time(int(event["created"])),
            is_live=bool(event["livemode"]),
            account=str(event.get("account") or ""),
        )
    except (KeyError, TypeError, ValueError, OverflowError, OSError) as error:
        raise WebhookRefused("The body is not a snapshot event of Stripe.") from error


def id_of(value: Any) -> str:
    """Return the id of an object given as an id or expanded; empty for None."""
    if value is None:
        return ""
    return value if isinstance(value, str) else str(value.id)


def _subscription_of(invoice: Any) -> str:
    parent = getattr(invoice, "parent", None)
    if parent is None or parent.type != "subscription_details":
        return ""
    return id_of(parent.subscription_details.subscription)


def product_of(line: Any) -> str:
    """Return the product that an invoice's line bills; empty for a line without a price."""
    pricing = getattr(line, "pricing", None)
    details = getattr(pricing, "price_details", None) if pricing else None
    return id_of(details.product) if details else ""


def _charged(line: Any) -> int:
    """Return the line's amount less its discounts."""
    discounts = getattr(line, "discount_amounts", None) or []
    return int(line.amount) - sum(int(discount.amount) for discount in discounts)


def _part_of(collected: int, *, ours: int, all_lines: int) -> int:
    """Return the part of the collected money that is for our lines: all of it if other lines are free."""
    if ours <= 0:
        return 0
    return collected if ours >= all_lines else collected * ours // all_lines


def _period_of(lines: Sequence[Any]) -> Any:
    """Return the period of the latest line that bills a subscription item; a proration only if there is no other."""
    periods = []
    for line in lines:
        details = getattr(getattr(line, "parent", None), "subscription_item_details", None)
        if details is not None and line.period.start < line.period.end:
            periods.append((not details.proration, int(line.period.end), int(line.period.start), line.period))
    return max(periods, key=lambda found: found[:3], default=(None,))[-1]


def _time(timestamp: int) -> datetime:
    return datetime.fromtimestamp(timestamp, UTC)


def _time_or_none(timestamp: int | None) -> datetime | None:
    return None if timestamp is None else _time(timestamp)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value or len(value) > 255:
        raise ValueError("no text")
    return value
