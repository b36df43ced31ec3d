"""Subscriptions against Stripe's, both ways."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from payments.errors import BillingRefused
from payments.models import Subscription
from payments.services.reconciliation import customers
from payments.services.reconciliation.findings import Finding, Rule, pages
from payments.stripe.client import get_billing_client
from payments.stripe.states import SubscriptionState

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


def compare(*, counts: Counter[str]) -> Iterator[Finding]:
    """Yield subscriptions that are unlike Stripe's, or known on one side alone, or too many."""
    living: defaultdict[str, list[str]] = defaultdict(list)
    unstored: list[SubscriptionState] = []
    compared: set[int] = set()
    for page in pages(get_billing_client().living_subscriptions()):
        rows, ours = _rows_of(page), customers.ours_among(state.customer_id for state in page)
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
                yield from _unlike(row, state)
    yield from _too_many(living)
    # Our rows cannot hold two living ones, so the second is reported as such.
    yield from (_missing(state) for state in unstored if len(living[state.customer_id]) == 1)
    for row in Subscription.objects.living().select_related("customer").order_by("pk").iterator():
        if row.pk not in compared:
            counts["subscriptions"] += 1
            yield from _looked_up(row)


def _rows_of(page: list[SubscriptionState]) -> dict[str, Subscription]:
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
        yield Finding(rule=Rule.SUBSCRIPTION_UNKNOWN, have=row.status, wanted=reason, ids=_ids(row))
        return
    yield from _unlike(row, state)


def _unlike(row: Subscription, state: SubscriptionState) -> Iterator[Finding]:
    ours = {here: getattr(row, here) for here, _ in _FIELDS}
    theirs = {here: getattr(state, there) for here, there in _FIELDS}
    ours["customer"], theirs["customer"] = row.customer.stripe_customer_id, state.customer_id
    differing = [name for name in ours if ours[name] != theirs[name]]
    if differing:
        yield Finding(
            rule=Rule.SUBSCRIPTION_DIFFERS,
            have=", ".join(f"{name} {ours[name]}" for name in differing),
            wanted=", ".join(f"{name} {theirs[name]}" for name in differing),
            ids=_ids(row),
        )


def _ids(row: Subscription) -> dict[str, str]:
    return {"subscription": row.stripe_subscription_id, "customer": row.customer.stripe_customer_id}
