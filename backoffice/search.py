"""Search: one field for addresses, hashes and ids of any kind."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import F, Model, QuerySet
from django.db.models.functions import Lower
from django.db.models.lookups import StartsWith
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from earnings.models import AdNetwork, Postback
from gateway.admin.search import address_like
from gateway.staff.models import StaffAction
from payments.models import BillingOperation, Clawback, Customer, Payout, StripeEvent, Subscription
from relay.models import Attempt, RelayTransaction
from users.models import ProfileCard, User

MOST = 20
_WHOLE_ADDRESS = re.compile(r"0x[0-9a-f]{40}")
MayView = Callable[[type[Model]], bool]

SEARCHABLE = (
    "A profile's address, whole or at least four characters of its beginning or end, in any casing",
    "A profile as name#1234, where 1234 are the first four digits of its address",
    "The user name of a member of staff, or its beginning, in any casing",
    "A profile's name or its beginning; names are not unique, so compare the address",
    "The hash of any attempt of a call: whole, shortened as in lists, or at least its first six characters",
    "An invoice number, as on the payer's invoice",
    "A Stripe id: cus_…, sub_…, si_…, in_…, pi_…, evt_…; or seti_…, re_… or du_… of an event about it",
    "A request id",
    "An ad network's id of an event",
    "The id of a billing operation, which is its idempotency key at Stripe",
)


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A search result: its kind, name and page."""

    kind: str
    name: str
    link: str


def find(term: str, *, may_view: MayView) -> list[Hit]:
    """Return the rows that match the term, of the kinds that the user may view, at most `MOST` of each."""
    unique: dict[tuple[str, Any], Model] = {}
    for rows in _places(term.strip()):
        if may_view(rows.model):
            for row in rows[:MOST]:
                unique.setdefault((row._meta.label, row.pk), row)
    return [_hit(row) for row in unique.values()]


def page(request: HttpRequest) -> HttpResponse:
    """Show the results for the query `q`; redirect to a single result."""
    term = request.GET.get("q", "").strip()
    hits = find(term, may_view=_may_view(request)) if term else []
    if len(hits) == 1:
        return HttpResponseRedirect(hits[0].link)
    context = {
        **admin.site.each_context(request),
        "title": "Search",
        "has_search_box": True,
        "term": term,
        "hits": hits,
        "most": MOST,
        "searchable": SEARCHABLE,
    }
    return TemplateResponse(request, "backoffice/search.html", context)


def _may_view(request: HttpRequest) -> MayView:
    def may_view(model: type[Model]) -> bool:
        page = admin.site._registry.get(model)
        return page is not None and page.has_view_permission(request)

    return may_view


def _hit(row: Model) -> Hit:
    meta = row._meta
    return Hit(
        kind=str(meta.verbose_name),
        name=str(row),
        link=reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=[row.pk]),
    )


def _places(term: str) -> Iterator[QuerySet[Any]]:
    """Yield querysets that may match the term. Each is used only if the term has its form, and reads one index."""
    if not term:
        return
    lowered = term.lower()
    if not _WHOLE_ADDRESS.fullmatch(lowered):
        begun = Attempt.objects.with_hash_like(lowered).order_by("transaction_hash")[:MOST]
        yield RelayTransaction.objects.filter(
            pk__in=list(begun.values_list("relay_transaction_id", flat=True))
        )
    if _WHOLE_ADDRESS.fullmatch(lowered):
        yield User.objects.filter(profile_address=lowered)
    elif (part := address_like(lowered)) is not None:
        yield User.objects.filter(part).order_by("pk")
    # The index has only staff names, so ignoring their casing is cheap.
    yield User.objects.filter(is_staff=True, username__istartswith=term).order_by("pk")
    yield _called(lowered)
    yield from _at_stripe(term)
    yield from _invoiced(term)
    yield from _of_request(term)
    yield from _of_networks(term)


def _called(name: str) -> QuerySet[User]:
    cards = ProfileCard.objects.alias(lowered=Lower("name")).filter(StartsWith(F("lowered"), name))
    return User.objects.filter(pk__in=cards.values("user_id")).order_by("pk")


def _at_stripe(term: str) -> Iterator[QuerySet[Any]]:
    match term.split("_", 1)[0]:
        case "cus":
            yield Customer.objects.filter(stripe_customer_id=term)
            yield Subscription.objects.filter(customer__stripe_customer_id=term).order_by("-pk")
        case "sub":
            yield Subscription.objects.filter(stripe_subscription_id=term)
        case "si":
            yield Subscription.objects.filter(stripe_item_id=term)
        case "in":
            yield Payout.objects.filter(stripe_invoice_id=term)
            yield Clawback.objects.filter(payout__stripe_invoice_id=term).order_by("pk")
        case "pi":
            paid = Payout.objects.paid_by([term])
            yield paid
            yield Clawback.objects.filter(payout__in=paid).order_by("pk")
        case "evt":
            yield StripeEvent.objects.filter(stripe_event_id=term)
            return
        # Cards, refunds, disputes and charges have no rows here, only events about them.
        case "seti" | "re" | "pyr" | "du" | "dp" | "ch" | "py":
            pass
        case _:
            return
    yield StripeEvent.objects.filter(object_id=term).order_by("pk")


def _invoiced(term: str) -> Iterator[QuerySet[Any]]:
    if Payout.NUMBER.fullmatch(term.upper()):
        yield Payout.objects.filter(invoice_number=term.upper())


def _of_request(term: str) -> Iterator[QuerySet[Any]]:
    yield RelayTransaction.objects.filter(request_id=term).exclude(request_id="").order_by("pk")
    yield Postback.objects.filter(request_id=term).exclude(request_id="").order_by("pk")
    yield StaffAction.of_request(term).order_by("pk")
    try:
        yield BillingOperation.objects.filter(pk=UUID(term))
    except ValueError:
        return


def _of_networks(term: str) -> Iterator[QuerySet[Any]]:
    # The index begins with the network, and there are only a few networks.
    postbacks = Postback.objects.filter(network__in=AdNetwork.objects.values("pk")).order_by("pk")
    yield postbacks.filter(external_id=term)
    yield postbacks.filter(original_id=term)
