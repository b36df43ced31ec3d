"""The problems of a person's account, as sentences with links, at the top of the person's page."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from django.urls import reverse

from earnings.models import PostbackState
from gateway.staff.models import ApprovalRequest
from payments.models import StripeEvent, Subscription
from relay.models import RelayTransaction
from users.models import AccountDeletion, Ban

if TYPE_CHECKING:
    from backoffice.person import Person

# Most calls take less time than this.
_SLOW = timedelta(minutes=5)
_FINE = (Subscription.Status.ACTIVE, Subscription.Status.TRIALING, *Subscription.ENDED)


class Trouble(NamedTuple):
    """A problem of the account as a sentence, with a link to its details."""

    text: str
    page: str = ""
    is_alarming: bool = True


def troubles_of(person: "Person", now: datetime) -> list[Trouble]:
    """Return the person's problems, in three statements."""
    return [
        *_of_the_account(person),
        *_of_payments(person, now),
        *_of_calls(person, now),
        *_of_earnings(person),
        *_requests(person),
    ]


def _page(model: str, pk: object) -> str:
    return reverse(f"admin:{model}_change", args=[pk])


def _of_the_account(person: "Person") -> Iterator[Trouble]:
    deletion = AccountDeletion.objects.filter(user=person.user).first()
    if deletion is not None:
        text = f"Asked for deletion on {deletion.requested_at:%Y-%m-%d}: {deletion.get_status_display()}."
        yield Trouble(text, _page("users_accountdeletion", deletion.pk))
    elif ban := Ban.objects.open().filter(user=person.user).select_related("banned_by").first():
        yield Trouble(f"Banned on {ban.banned_at:%Y-%m-%d} by {ban.banned_by}: {ban.reason}")
    elif not person.user.is_active:
        yield Trouble("The account is closed: this person cannot sign in.")
    if person.account.available < 0:
        limit = person.debt_limit
        yield Trouble(f"Owes {-person.account.available:,} credits; calls are accepted up to {limit:,}.")


def _of_payments(person: "Person", now: datetime) -> Iterator[Trouble]:
    for row, _ in person.subscriptions:
        if row.status not in _FINE or row.is_resting or row.stuck_invoice(now):
            state = row.get_status_display().lower()
            yield Trouble(f"Subscription {state}: {row.outlook()}.", _page("payments_subscription", row.pk))
    for payment in person.payments:
        if payment.taken_back > 0:
            of_payment = f"of the payment of {payment.row.created_at:%Y-%m-%d}"
            text = f"{payment.taken_back:,} credits {of_payment} were taken back."
            yield Trouble(text, _page("payments_payout", payment.row.pk))
    ids = [row.stripe_subscription_id for row, _ in person.subscriptions]
    ids += [person.customer.stripe_customer_id] if person.customer else []
    failed = StripeEvent.objects.filter(object_id__in=ids, status=StripeEvent.Status.FAILED).defer("raw_body")
    for event in failed[:3]:
        yield Trouble(f"A Stripe event fails: {event.type}.", _page("payments_stripeevent", event.pk))


def _of_calls(person: "Person", now: datetime) -> Iterator[Trouble]:
    if not person.calls:
        return
    newest = person.calls[0].row
    page = _page("relay_relaytransaction", newest.pk)
    if newest.status in RelayTransaction.UNSUCCESSFUL:
        why = newest.failure_detail or newest.failure_code or newest.get_status_display()
        yield Trouble(f"The newest call did not succeed: {why}", page)
    elif newest.settled_at is None and newest.created_at < now - _SLOW:
        yield Trouble(f"The newest call has not ended since {newest.created_at:%Y-%m-%d %H:%M} UTC.", page)


def _of_earnings(person: "Person") -> Iterator[Trouble]:
    for row in person.postbacks:
        if row.state == PostbackState.HELD and row.available_at is None:
            yield Trouble(
                f"{row.credits:,} credits of {row.network} wait beyond a cap.",
                _page("earnings_postback", row.pk),
            )
        if row.is_conflicting:
            text = f"{row.network} sent an earning twice, with different content."
            yield Trouble(text, _page("earnings_postback", row.pk))
    if person.counted_earnings.are_held_longer:
        yield Trouble("New earnings are held for 14 days, because many were taken back.")


def _requests(person: "Person") -> Iterator[Trouble]:
    for request in ApprovalRequest.objects.waiting().filter(person_id=person.user.pk)[:3]:
        text = f"Request {request.pk} waits for a second person: {request.reason}"
        yield Trouble(text, _page("gateway_admin_approvalrequest", request.pk), is_alarming=False)
