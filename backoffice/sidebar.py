"""The sidebar: for each role the pages of its work, and the page with all lists."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from backoffice import reconciliation
from gateway.admin import navigation

MOST_ENTRIES = 15

# Groups of lists in the order of the page with all of them.
_ORDER = ("People", "Credits", "Relay", "Payments", "Check-in", "Ad networks", "Webhooks", "System")

_Groups = dict[str, tuple[str, ...]]
# What each role does most. Overview and the page with all lists come in addition.
_OF_ROLES: dict[str, _Groups] = {
    "support": {
        "People": ("users.User", "users.AccountDeletion", "sponsors.Sponsor"),
        "Credits": ("credits.CreditEntry", "relay.RelayTransaction", "earnings.Postback", "checkin.CheckIn"),
        "Payments": ("payments.Subscription", "payments.Payout", "payments.Refund", "payments.StripeEvent"),
        "Work": ("gateway_admin.ApprovalRequest", "webhooks.Message"),
    },
    "finance": {
        "Accounting": ("books", "accounting.Month", "accounting.CoinRate", "credits.CreditEntry"),
        "Payments": ("payments.Payout", "payments.Refund", "payments.Clawback", "sponsors.Sponsor"),
        "Prices": ("payments.PayoutRate", "relay.CreditPrice", "payments.CreditPack", "rewards.Badge"),
        "Work": ("gateway_admin.ApprovalRequest",),
    },
    "operations": {
        "Relay": ("relay.RelayTransaction", "relay.Attempt", "relay.Relayer", "relay.TopUp", "relay.Loss"),
        "Connections": (
            "earnings.AdNetwork",
            "earnings.Postback",
            "payments.StripeEvent",
            "webhooks.Endpoint",
            "webhooks.Message",
        ),
        "Work": ("gateway_admin.ApprovalRequest", "gateway_admin.Pause", "users.User"),
    },
}
# For superusers, and for people with several roles or none.
_OF_OTHERS: _Groups = {
    "People": ("users.User", "credits.CreditEntry", "relay.RelayTransaction", "sponsors.Sponsor"),
    "Money": ("books", "accounting.Month", "payments.Subscription", "payments.Payout"),
    "Service": ("relay.Relayer", "earnings.AdNetwork", "gateway_admin.Pause"),
    "Work": ("gateway_admin.ApprovalRequest", "gateway_admin.StaffAction"),
}


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """Return at most `MOST_ENTRIES` links in groups, to what `request.user` may open."""
    overview = {"title": "Overview", "icon": "monitoring", "link": reverse("admin:index")}
    lists = {"title": "All lists", "icon": "apps", "link": reverse("admin:lists")}
    groups = [
        {"title": title, "items": _links(request, names)} for title, names in _groups_of(request).items()
    ]
    return [{"items": [overview]}, *(group for group in groups if group["items"]), {"items": [lists]}]


def _groups_of(request: HttpRequest) -> _Groups:
    user: Any = request.user
    roles = [] if user.is_superuser else list(user.groups.values_list("name", flat=True))
    return _OF_ROLES.get(roles[0], _OF_OTHERS) if len(roles) == 1 else _OF_OTHERS


def _links(request: HttpRequest, names: tuple[str, ...]) -> list[dict[str, Any]]:
    books = [{"title": "Reconciliation", "icon": "balance", "link": reverse("admin:books")}]
    pages = books if "books" in names and reconciliation.may_be_opened(request) else []
    return [*pages, *navigation.chosen(request, [name for name in names if name != "books"])]


def lists(request: HttpRequest) -> HttpResponse:
    """Show links to all lists that `request.user` may view."""
    context = {
        **admin.site.each_context(request),
        "title": "All lists",
        "groups": navigation.groups(request, order=_ORDER),
    }
    return TemplateResponse(request, "backoffice/lists.html", context)
