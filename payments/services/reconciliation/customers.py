"""Customer rows against Stripe's customers, both ways."""

from collections import Counter
from collections.abc import Iterable, Iterator

from django.contrib.auth import get_user_model

from payments.models import Customer
from payments.services import payouts
from payments.services.reconciliation.findings import Finding, Rule, Window, pages
from payments.stripe.client import get_billing_client
from payments.stripe.states import CustomerState


def compare(*, window: Window, counts: Counter[str]) -> Iterator[Finding]:
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
