"""
Customer rows against Stripe's customers, both ways.

Subscriptions against Stripe's, both ways.

Paid invoices against payouts, both ways.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from django.contrib.auth import get_user_model

from payments.errors import BillingRefused, RateMissing
from payments.models import Customer, Payout, Subscription
from payments.services import payouts
from payments.services.reconciliation.findings import Finding, Rule, Window, pages
from payments.stripe.client import get_billing_client
from payments.stripe.states import CustomerState, InvoiceState, SubscriptionState


def compare_customers(*, window: Window, counts: Counter[str]) -> Iterator[Finding]:
    """Yield customers that are made for another user than we think, or that one side alone knows."""
    seen: set[int] = set()
    for page in pages(get_billing_client().customers()):
        rows = _rows_of(page)
        for state in page:
            row = rows.get(state.customer_id)
            if row is not None:
                seen.add(row.pk)
                yield from _unlike(row, state)
        yield from _unstored([state for state in page if state.customer_id not in rows], window)
    for row in Customer.objects.select_related("user").order_by("pk").iterator():
        counts["customers"] += 1
        if row.pk not in seen:
            yield Finding(
                rule=Rule.CUSTOMER_UNKNOWN, have="a customer", wanted="none, or deleted", ids=_ids(row)
            )


def ours_among(customer_ids: Iterable[str]) -> set[str]:
    """Return the Stripe customers that are users of ours; others may use the same account."""
    known = Customer.objects.filter(stripe_customer_id__in=set(customer_ids))
    return set(known.values_list("stripe_customer_id", flat=True))


def _rows_of(page: list[CustomerState]) -> dict[str, Customer]:
    named = [state.customer_id for state in page]
    found = Customer.objects.filter(stripe_customer_id__in=named).select_related("user")
    return {row.stripe_customer_id: row for row in found}


def _unlike(row: Customer, state: CustomerState) -> Iterator[Finding]:
    if not payouts.is_of_our_mode(is_live=state.is_live):
        told = f"livemode {state.is_live}"
        yield Finding(rule=Rule.LIVEMODE, have="a customer", wanted=told, ids=_ids(row))
    ours, theirs = _whose(row), f"user {state.user_id} {state.profile_address}"
    if ours != theirs:
        yield Finding(rule=Rule.CUSTOMER_DIFFERS, have=ours, wanted=theirs, ids=_ids(row))


def _unstored(states: list[CustomerState], window: Window) -> Iterator[Finding]:
    """
    Yield customers that were made for a user of ours who has none, or another one.

    User and profile must both fit: another deployment on the same account numbers its users, too.
    """
    claims = [state for state in states if state.created_at <= window.settled_before]
    named = {state.profile_address for state in claims}
    users = {
        user.profile_address: user for user in get_user_model().objects.filter(profile_address__in=named)
    }
    for state in claims:
        user = users.get(state.profile_address)
        if user is None or str(user.pk) != state.user_id:
            continue
        stored = Customer.objects.filter(user_id=user.pk).values_list("stripe_customer_id", flat=True).first()
        yield Finding(
            rule=Rule.CUSTOMER_MISSING,
            have=stored or "none",
            wanted=state.customer_id,
            ids={"customer": state.customer_id, "user": str(user.pk)},
        )


def _whose(row: Customer) -> str:
    return f"user {row.user_id} {row.user.profile_address}"


def _ids(row: Customer) -> dict[str, str]:
    return {"customer": row.stripe_customer_id, "user": str(row.user_id)}


_FIELDS = (
    ("status", "status"),
    ("amount_minor", "amount_minor"),
    ("currency", "currency"),
    ("current_period_start", "current_period_start"),
    ("current_period_end", "current_period_end"),
    ("cancels_at_period_end", "cancels_at_period_end"),
    ("ended_at", "ended_at"),
    ("stripe_item_id", "item_id"),
)


def compare_subscriptions(*, counts: Counter[str]) -> Iterator[Finding]:
    """Yield subscriptions that are unlike Stripe's, or known on one side alone, or too many."""
    living: defaultdict[str, list[str]] = defaultdict(list)
    unstored: list[SubscriptionState] = []
    compared: set[int] = set()
    for page in pages(get_billing_client().living_subscriptions()):
        rows, ours = _rows_of_subscriptions(page), ours_among(state.customer_id for state in page)
        for state in page:
            if state.customer_id not in ours and state.subscription_id not in rows:
                continue
            counts["subscriptions"] += 1
            living[state.customer_id].append(state.subscription_id)
            row = rows.get(state.subscription_id)
            if row is None:
                unstored.append(state)
            else:
                compared.add(row.pk)
                yield from _unlike_subscriptions(row, state)
    yield from _too_many(living)
    # Our rows cannot hold two living ones, so the second is reported as such.
    yield from (_missing(state) for state in unstored if len(living[state.customer_id]) == 1)
    for row in Subscription.objects.living().select_related("customer").order_by("pk").iterator():
        if row.pk not in compared:
            counts["subscriptions"] += 1
            yield from _looked_up(row)


def _rows_of_subscriptions(page: list[SubscriptionState]) -> dict[str, Subscription]:
    named = [state.subscription_id for state in page]
    found = Subscription.objects.filter(stripe_subscription_id__in=named).select_related("customer")
    return {row.stripe_subscription_id: row for row in found}


def _too_many(living: dict[str, list[str]]) -> Iterator[Finding]:
    for customer_id, subscription_ids in living.items():
        if len(subscription_ids) > 1:
            stored = Subscription.objects.living().filter(stripe_subscription_id__in=subscription_ids)
            yield Finding(
                rule=Rule.SUBSCRIPTIONS_TWO_LIVING,
                have=" ".join(stored.values_list("stripe_subscription_id", flat=True)) or "none",
                wanted=" ".join(sorted(subscription_ids)),
                ids={"customer": customer_id},
            )


def _missing(state: SubscriptionState) -> Finding:
    ids = {"subscription": state.subscription_id, "customer": state.customer_id}
    return Finding(rule=Rule.SUBSCRIPTION_MISSING, have="no row", wanted=state.status, ids=ids)


def _looked_up(row: Subscription) -> Iterator[Finding]:
    """Read a subscription that lives here and is not among Stripe's living ones."""
    try:
        state = get_billing_client().retrieve_subscription(subscription_id=row.stripe_subscription_id)
    except BillingRefused as refusal:
        reason = str(refusal.members.get("reason", refusal.code))
        yield Finding(
            rule=Rule.SUBSCRIPTION_UNKNOWN, have=row.status, wanted=reason, ids=_ids_subscriptions(row)
        )
        return
    yield from _unlike_subscriptions(row, state)


def _unlike_subscriptions(row: Subscription, state: SubscriptionState) -> Iterator[Finding]:
    ours = {here: getattr(row, here) for here, _ in _FIELDS}
    theirs = {here: getattr(state, there) for here, there in _FIELDS}
    ours["customer"], theirs["customer"] = row.customer.stripe_customer_id, state.customer_id
    differing = [name for name in ours if ours[name] != theirs[name]]
    if differing:
        yield Finding(
            rule=Rule.SUBSCRIPTION_DIFFERS,
            have=", ".join(f"{name} {ours[name]}" for name in differing),
            wanted=", ".join(f"{name} {theirs[name]}" for name in differing),
            ids=_ids_subscriptions(row),
        )


def _ids_subscriptions(row: Subscription) -> dict[str, str]:
    return {"subscription": row.stripe_subscription_id, "customer": row.customer.stripe_customer_id}


def compare_invoices(*, window: Window, counts: Counter[str]) -> Iterator[Finding]:
    """Yield paid invoices without a payout, and payouts that their invoice does not bear out."""
    compared: set[int] = set()
    for page in pages(get_billing_client().paid_invoices_since(since=window.since)):
        known = _payouts_of(page)
        ours = ours_among(invoice.customer_id for invoice in page)
        for invoice in page:
            payout = known.get(invoice.invoice_id)
            counts["invoices"] += invoice.customer_id in ours
            if payout is not None:
                compared.add(payout.pk)
                yield from _unlike_invoices(payout, invoice)
            elif invoice.customer_id in ours:
                yield from _without_payout(invoice, window)
    recent = Payout.objects.filter(created_at__gte=window.since).select_related("subscription__customer")
    for payout in recent.order_by("pk").iterator():
        counts["payouts"] += 1
        if payout.pk not in compared:
            yield from _looked_up_invoices(payout)


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


def _looked_up_invoices(payout: Payout) -> Iterator[Finding]:
    """Read the invoice of a payout that is not among the recent paid ones."""
    try:
        invoice = get_billing_client().retrieve_invoice(invoice_id=payout.stripe_invoice_id)
    except BillingRefused as refusal:
        yield Finding(
            rule=Rule.INVOICE_UNKNOWN,
            have=f"{payout.credits} credits paid out",
            wanted=str(refusal.members.get("reason", refusal.code)),
            ids=_ids_invoices(payout),
        )
        return
    yield from _unlike_invoices(payout, invoice)


def _unlike_invoices(payout: Payout, invoice: InvoiceState) -> Iterator[Finding]:
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
    return Finding(rule=rule, have=ours or "nothing", wanted=theirs or "nothing", ids=_ids_invoices(payout))


def _ids_invoices(payout: Payout) -> dict[str, str]:
    return {"invoice": payout.stripe_invoice_id, "payout": str(payout.pk)}
