"""Pages of other packages, moved onto our base classes: roles, second factors and login attempts."""

from base64 import b32encode
from typing import Any, ClassVar

from axes.admin import AccessAttemptAdmin, AccessFailureLogAdmin, AccessLogAdmin
from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin
from django.contrib.auth.models import Group
from django.http import HttpRequest, HttpResponse
from django_otp.plugins.otp_totp.admin import TOTPDeviceAdmin
from django_otp.plugins.otp_totp.models import TOTPDevice

from gateway.common.admin import ReadOnlyAdmin, StaffAdmin

for _model in (Group, TOTPDevice, AccessAttempt, AccessFailureLog, AccessLog):
    admin.site.unregister(_model)


@admin.register(Group)
class RoleAdmin(GroupAdmin, StaffAdmin[Group]):
    """Roles; a role is a group."""

    ordering = ("name",)


@admin.register(TOTPDevice)
class SecondFactorAdmin(TOTPDeviceAdmin, StaffAdmin[TOTPDevice]):  # type: ignore[misc]
    """Second factors of staff. A key is shown only once, when it is made: who reads it could log in as them."""

    list_filter = ("confirmed",)
    list_select_related = ("user",)
    ordering = ("-pk",)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Hide the key, which is random."""
        seen = ("created_at", "last_used_at") if obj else ()
        return ((None, {"fields": ("user", "name", "confirmed", *seen)}),)

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the key in the form that authenticator apps ask for."""
        key = b32encode(obj.bin_key).decode()
        messages.warning(request, f"For the authenticator app of {obj.user}, now and never again: {key}")
        response: HttpResponse = super().response_add(request, obj, post_url_continue)
        return response


class _Knock(ReadOnlyAdmin):
    """Login attempts; no filter reads a whole column."""

    date_hierarchy = None
    list_filter: ClassVar[Any] = (("attempt_time", admin.DateFieldListFilter),)
    search_fields = ("username__exact", "ip_address__exact")
    search_help_text = "A whole user name or address."
    ordering = ("-pk",)


@admin.register(AccessAttempt)
class LockoutAdmin(_Knock, AccessAttemptAdmin):  # type: ignore[misc]
    """Names and addresses that failed to log in; deleting one ends its lockout early."""

    actions = ()

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("axes.delete_accessattempt")


@admin.register(AccessFailureLog)
class FailedLoginAdmin(_Knock, AccessFailureLogAdmin):  # type: ignore[misc]
    """Every login that failed."""


@admin.register(AccessLog)
class LoginAdmin(_Knock, AccessLogAdmin):  # type: ignore[misc]
    """Every login and logout."""
