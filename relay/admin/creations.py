"""Profiles that sponsors asked for, in the admin."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from gateway.admin import columns
from gateway.admin.base import ReadOnlyAdmin
from gateway.admin.of_chains import OfChains
from relay.models import ProfileCreation, RelayStatus


@admin.register(ProfileCreation)
class ProfileCreationAdmin(OfChains, ReadOnlyAdmin):
    """New profiles that sponsors paid for, and existing ones for which they opened accounts."""

    list_display = ("created_at", "profile", "sponsor", "api_key", "kind", "status")
    list_display_links = ("created_at",)
    list_filter = ("kind",)
    list_select_related = ("sponsor", "api_key", "hold__relay_transaction")
    search_fields = ("profile_address__exact", "sponsor__slug__exact")
    search_help_text = "The address of a profile, or the name of a sponsor."
    ordering = ("-id",)
    exclude = ("request_key", "body_hash", "origin")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ProfileCreation]:
        relayed = ("payload", "signature")
        return super().get_queryset(request).defer(*(f"hold__relay_transaction__{name}" for name in relayed))

    @admin.display(description="profile", ordering="profile_address")
    def profile(self, row: ProfileCreation) -> SafeString:
        """Link to the profile's user."""
        page = reverse("admin:users_user_change", args=[row.user_id])
        return format_html('<a href="{}">{}</a>', page, columns.short(row.profile_address))

    @admin.display(description="status")
    def status(self, row: ProfileCreation) -> str | SafeString:
        """Return the deployment's status, with a link to it; without a deployment, that the profile existed."""
        if row.hold is None:
            return "existed before"
        relayed = getattr(row.hold, "relay_transaction", None)
        if relayed is None:
            return RelayStatus.PENDING.label
        page = reverse("admin:relay_relaytransaction_change", args=[relayed.pk])
        return format_html('<a href="{}">{}</a>', page, columns.word_of(relayed.status))
