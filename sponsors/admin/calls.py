"""Sponsored calls in the admin, the usage of each limit, and the requests that sponsors refused."""

from django.contrib import admin

from gateway.admin.base import ReadOnlyAdmin
from sponsors.models import RefusalCount, SponsoredCall, Usage


@admin.register(SponsoredCall)
class SponsoredCallAdmin(ReadOnlyAdmin):
    """The holds of each sponsored call, and the usage that it counts."""

    list_display = (
        "id",
        "version",
        "hold",
        "sponsor_hold",
        "counted_credits",
        "counted_calls",
        "accepted_at",
    )
    list_select_related = ("version__policy__sponsor", "hold", "sponsor_hold")
    ordering = ("-id",)


@admin.register(Usage)
class UsageAdmin(ReadOnlyAdmin):
    """Credits and calls counted towards each limit of a policy."""

    list_display = ("id", "policy", "scope", "user_number", "begins", "credits", "calls")
    list_select_related = ("policy__sponsor",)
    ordering = ("-id",)


@admin.register(RefusalCount)
class RefusalCountAdmin(ReadOnlyAdmin):
    """How many requests each rule refused."""

    list_display = ("id", "sponsor", "day", "rule", "requests")
    list_select_related = ("sponsor",)
    search_fields = ("sponsor__slug__exact",)
    ordering = ("-id",)
