"""Compares customers and subscriptions with Stripe's, in both directions."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from payments.errors import BillingRefused, reason_of
from payments.models import Customer, Subscription
from payments.services import payouts
from payments.services.reconciliation.findings import Finding, Rule, Window, pages, rows_by
from payments.stripe import get_billing_client
from payments.stripe.client import CustomerState, SubscriptionState
from users.models import User

# The compared values: the name of each in our row, and in Stripe's state.
_COMPARED_FIELDS = (
    ("status", "status"),
    ("amount_minor", "amount_minor"),
    ("currency", "currency"),
    ("current_period_start", "current_period_start"),
    ("current_period_end", "current_period_end"),
    ("cancels_at_period_end", "cancels_at_period_end"),
    ("ended_at", "ended_at"),
    ("stripe_item_id", "item_id"),
)


def compare_customers(*, window: Window, counts: Counter[str]) -> Iterator[Finding]:
    """Yield customers that belong to another user at Stripe, or exist only on one side."""
    compared: set[int] = set()
    customers = Customer.objects.select_related("user").order_by("pk")
    for page in pages(get_billing_client().customers()):
        rows = rows_by("stripe_customer_id", [state.customer_id for state in page], customers)
        for state in page:
            row = rows.get(state.customer_id)
            if row is not None:
                compared.add(row.pk)
                if row.deleted_at is None:
                    yield from _customer_differences(row, state)
        yield from _missing_customers([state for state in page if state.customer_id not in rows], window)
    for row in customers.current().iterator():
        counts["customers"] += 1
        if row.pk not in compared:
            ids = _customer_ids(row)
            yield Finding(rule=Rule.CUSTOMER_UNKNOWN, have="a customer", wanted="none, or deleted", ids=ids)


def ours_among(customer_ids: Iterable[str]) -> set[str]:
    """Return the ids that are customers of our users; other systems may use the same account."""
    rows = Customer.objects.filter(stripe_customer_id__in=set(customer_ids))
    return set(rows.values_list("stripe_customer_id", flat=True))


def _customer_differences(row: Customer, state: CustomerState) -> Iterator[Finding]:
    if not payouts.is_of_our_mode(is_live=state.is_live):
        mode = f"livemode {state.is_live}"
        yield Finding(rule=Rule.LIVEMODE, have="a customer", wanted=mode, ids=_customer_ids(row))
    ours, theirs = _owner_of(row), f"user {state.user_id} {state.profile_address}"
    if ours != theirs:
        yield Finding(rule=Rule.CUSTOMER_DIFFERS, have=ours, wanted=theirs, ids=_customer_ids(row))


def _missing_customers(states: list[CustomerState], window: Window) -> Iterator[Finding]:
    """
    Yield customers at Stripe that were created for a user of ours who has no stored customer, or another one.

    User id and profile must both match, because another deployment on the same account has the same user ids.
    """
    settled = [state for state in states if state.created_at <= window.settled_before]
    addresses = {state.profile_address for state in settled}
    users = {user.profile_address: user for user in User.objects.filter(profile_address__in=addresses)}
    for state in settled:
        user = users.get(state.profile_address)
        if user is None or str(user.pk) != state.user_id:
            continue
        stored = (
            Customer.objects.current()
            .filter(user_id=user.pk)
            .values_list("stripe_customer_id", flat=True)
            .first()
        )
        yield Finding(
            rule=Rule.CUSTOMER_MISSING,
            have=stored or "none",
            wanted=state.customer_id,
            ids={"customer": state.customer_id, "user": str(user.pk)},
        )


def _owner_of(row: Customer) -> str:
    return f"user {row.user_id} {row.user.profile_address}"


def _customer_ids(row: Customer) -> dict[str, str]:
    return {"customer": row.stripe_customer_id, "user": str(row.user_id)}


def compare_subscriptions(*, counts: Counter[str]) -> Iterator[Finding]:
    """Yield subscriptions that differ from Stripe's or exist only on one side, and several live ones of one user."""
    live: defaultdict[str, list[str]] = defaultdict(list)
    missing: list[SubscriptionState] = []
    compared: set[int] = set()
    subscriptions = Subscription.objects.select_related("customer")
    for page in pages(get_billing_client().live_subscriptions()):
        rows = rows_by("stripe_subscription_id", [state.subscription_id for state in page], subscriptions)
        ours = ours_among(state.customer_id for state in page)
        for state in page:
            if state.customer_id not in ours and state.subscription_id not in rows:
                continue
            counts["subscriptions"] += 1
            live[state.customer_id].append(state.subscription_id)
            row = rows.get(state.subscription_id)
            if row is None:
                missing.append(state)
            else:
                compared.add(row.pk)
                yield from _subscription_differences(row, state)
    yield from _several_live(live)
    yield from map(_missing_subscription, missing)
    for row in subscriptions.live().order_by("pk").iterator():
        if row.pk not in compared:
            counts["subscriptions"] += 1
            yield from _not_listed(row)


def _several_live(live: dict[str, list[str]]) -> Iterator[Finding]:
    for customer_id, subscription_ids in live.items():
        if len(subscription_ids) > 1:
            yield Finding(
                rule=Rule.SUBSCRIPTIONS_TWO_LIVE,
                have=" ".join(sorted(subscription_ids)),
                wanted="one",
                ids={"customer": customer_id},
            )


def _missing_subscription(state: SubscriptionState) -> Finding:
    ids = {"subscription": state.subscription_id, "customer": state.customer_id}
    return Finding(rule=Rule.SUBSCRIPTION_MISSING, have="no row", wanted=state.status, ids=ids)


def _not_listed(row: Subscription) -> Iterator[Finding]:
    try:
        state = get_billing_client().retrieve_subscription(subscription_id=row.stripe_subscription_id)
    except BillingRefused as refusal:
        reason = reason_of(refusal)
        yield Finding(
            rule=Rule.SUBSCRIPTION_UNKNOWN, have=row.status, wanted=reason, ids=_subscription_ids(row)
        )
        return
    yield from _subscription_differences(row, state)


def _subscription_differences(row: Subscription, state: SubscriptionState) -> Iterator[Finding]:
    ours = {here: getattr(row, here) for here, _ in _COMPARED_FIELDS}
    theirs = {here: getattr(state, there) for here, there in _COMPARED_FIELDS}
    if not state.is_ours:
        theirs["status"] = "without our product"
    ours["customer"], theirs["customer"] = row.customer.stripe_customer_id, state.customer_id
    differing = [name for name in ours if ours[name] != theirs[name]]
    if differing:
        yield Finding(
            rule=Rule.SUBSCRIPTION_DIFFERS,
            have=", ".join(f"{name} {ours[name]}" for name in differing),
            wanted=", ".join(f"{name} {theirs[name]}" for name in differing),
            ids=_subscription_ids(row),
        )


def _subscription_ids(row: Subscription) -> dict[str, str]:
    return {"subscription": row.stripe_subscription_id, "customer": row.customer.stripe_customer_id}
