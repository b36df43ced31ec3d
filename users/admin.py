"""Support's pages: find a person by address, see their sessions, end one."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.timezone import now
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from gateway.common.admin import ReadOnlyAdmin, ReadOnlyInline, StaffAdmin
from gateway.common.fields import checksum
from users.models import SignInSession, User
from users.services import sessions


def _as_address(term: str) -> str | None:
    """Return the searched text as an address, so that the search uses the column's own index."""
    try:
        return checksum(term.strip())
    except ValueError:
        return None


class SignInSessionInline(ReadOnlyInline[SignInSession, User]):
    """The sessions of the shown user."""

    model = SignInSession
    fields = readonly_fields = (
        "controller_address",
        "created_at",
        "refreshed_at",
        "expires_at",
        "revoked_at",
    )
    ordering = ("-created_at",)
    show_change_link = True


@admin.register(User)
class UserAdmin(DjangoUserAdmin[User], StaffAdmin[User]):
    """Staff are edited here; of a wallet user only whether the account is open."""

    list_display = ("username", "profile_address", "is_active", "is_staff", "date_joined", "last_login")
    list_filter = ("is_active", "is_staff")
    search_fields = ("username__istartswith", "email__istartswith")
    search_help_text = "A profile address in any casing, or the start of a staff name."
    ordering = ("-date_joined",)
    inlines = (SignInSessionInline,)
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[User], search_term: str
    ) -> tuple[QuerySet[User], bool]:
        address = _as_address(search_term)
        if address is None:
            return super().get_search_results(request, queryset, search_term)
        return queryset.filter(profile_address=address), False

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is not None and obj.profile_address:
            return ((None, {"fields": ("profile_address", "is_active", "date_joined")}),)
        return super().get_fieldsets(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("profile_address", "date_joined", "last_login")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # The ledger keeps its people; an account is closed and not deleted.
        return False


@admin.register(SignInSession)
class SignInSessionAdmin(ReadOnlyAdmin):
    """Who signed in when and by which controller, and the button that ends it."""

    list_display = ("user", "controller_address", "created_at", "refreshed_at", "expires_at", "revoked_at")
    list_filter = ("revoked_reason",)
    list_select_related = ("user",)
    search_fields = ("controller_address",)
    search_help_text = "The address of a profile or of a controller, in any casing."
    ordering = ("-created_at",)
    actions = ("revoke",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[SignInSession], search_term: str
    ) -> tuple[QuerySet[SignInSession], bool]:
        address = _as_address(search_term)
        if address is None:
            return super().get_search_results(request, queryset, search_term)
        return queryset.filter(Q(user__profile_address=address) | Q(controller_address=address)), False

    @admin.action(description="End the selected sessions now", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[SignInSession]) -> None:
        """End the sessions through the service."""
        ended = [
            session.pk
            for session in queryset
            if sessions.end(session_id=session.pk, reason=SignInSession.Reason.STAFF, now=now())
        ]
        for pk in ended:
            self.log_change(request, queryset.get(pk=pk), "ended by staff")
        messages.success(request, f"{len(ended)} sessions ended.")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("users.change_signinsession")
