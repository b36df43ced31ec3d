"""Postbacks with the factors of their credits, and the references under which networks know users."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from credits.admin import OwnedAdmin
from earnings.admin.decisions import ASSIGN, CLOSE, FORFEIT, RELEASE_BEYOND_CAP, RELEASE_EARLY
from earnings.models import NetworkUser, Postback
from gateway.admin.actions import ReasonedActions


class OfNetworkAdmin(OwnedAdmin):
    owner_path = "user"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("network")


@admin.register(Postback)
class PostbackAdmin(ReasonedActions, OfNetworkAdmin):
    """Every postback with the factors of its credits; held ones can be released or forfeited."""

    staff_actions = (RELEASE_EARLY, RELEASE_BEYOND_CAP, FORFEIT, ASSIGN, CLOSE)
    list_display = (
        "id",
        "network",
        "kind",
        "state",
        "profile",
        "amount",
        "rate",
        "credits",
        "is_conflicting",
        "received_at",
    )
    list_filter = ("network", "kind", "state", "hold_reason", "refused_because", "is_conflicting")
    search_fields = ("external_id__exact", "request_id__exact")
    list_defer = ("raw", "headers")
    exclude = ("raw",)
    readonly_fields = ("as_it_came",)

    @admin.display(description="as received")
    def as_it_came(self, postback: Postback) -> str:
        return bytes(postback.raw).decode("utf-8", errors="replace")

    @admin.display(description="profile")
    def profile(self, row: Postback) -> str:
        return super().profile(row) if row.user_id else ""


@admin.register(NetworkUser)
class NetworkUserAdmin(OfNetworkAdmin):
    list_display = ("network", "reference", "profile")
    search_fields = ("reference__exact",)
