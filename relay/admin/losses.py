"""Losses in the admin: gas that the service pays."""

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from gateway.admin.base import OwnedRows
from gateway.admin.of_chains import OfChains
from gateway.admin.search import people_like
from gateway.chain.config import chain_of, home
from gateway.common import clock
from relay.models import Loss
from relay.services.fleet import losses


@admin.register(Loss)
class LossAdmin(OfChains, OwnedRows):
    """Gas that the service pays; above the list, the use of the hourly budget and the users who cause most of it."""

    owner_path = "user"
    list_before_template = "relay/losses.html"
    list_display = ("reserved_at", "kind", "profile", "reserved", "lost", "settled_at")
    list_filter = ("kind",)
    search_fields = ("key__exact",)
    search_help_text = "A profile address whole or in part, or a key."
    ordering = ("-id",)
    list_select_related = ("user",)

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        now = clock.now()
        budget = losses.usage(now=now)
        return {
            **super().list_context(request),
            "budget": {
                "lost": _amount(budget.lost_wei),
                "reserved": _amount(budget.reserved_wei),
                "limit": _amount(budget.limit_wei),
                "percent": round(100 * budget.share),
                "is_used_up": budget.is_used_up,
            },
            "biggest_users": [
                {
                    "profile": row.profile_address,
                    "url": reverse("admin:users_user_change", args=[row.user_id]),
                    "lost": _amount(row.lost_wei),
                    "reserved": _amount(row.reserved_wei),
                }
                for row in losses.biggest_users(since=now - timedelta(days=1))
            ],
        }

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Loss], search_term: str
    ) -> tuple[QuerySet[Loss], bool]:
        people = people_like(search_term.strip())
        if people:
            return queryset.filter(user__in=people), False
        return super().get_search_results(request, queryset, search_term)

    @admin.display(description="profile")
    def profile(self, row: Any) -> str:
        return super().profile(row) if row.user else "-"

    @admin.display(description="reserved", ordering="reserved_wei")
    def reserved(self, loss: Loss) -> str:
        return chain_of(loss.chain_id).amount(loss.reserved_wei, places=6)

    @admin.display(description="lost", ordering="lost_wei")
    def lost(self, loss: Loss) -> str:
        return "-" if loss.lost_wei is None else chain_of(loss.chain_id).amount(loss.lost_wei, places=6)


def _amount(wei: int) -> str:
    return home().amount(wei, places=6)
