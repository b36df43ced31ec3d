"""Check-ins, seeds, and the switch."""

from typing import Any, cast

from django.contrib import admin
from django.forms import ModelForm
from django.http import HttpRequest

from checkin.models import CheckIn, CheckInSwitch, DailySeed
from checkin.services import switching
from credits.admin.ledger import OwnedAdmin
from gateway.common.admin import ReadOnlyAdmin
from gateway.common.owner import ProfileOwner


@admin.register(CheckIn)
class CheckInAdmin(OwnedAdmin):
    """Every draw, with what it was drawn from."""

    owner_path = "user"
    list_display = ("id", "profile", "day", "attempt", "awarded", "experience_only", "created_at")
    list_filter = ("experience_only",)
    readonly_fields = ("awarded", "effect_key")

    @admin.display(description="awarded")
    def awarded(self, row: CheckIn) -> str:
        """Show the result in words."""
        drop = row.result
        return f"{drop['type']} {drop['value']}" + (f" for {drop['minutes']} min" if drop["minutes"] else "")


@admin.register(DailySeed)
class DailySeedAdmin(ReadOnlyAdmin):
    """Promises, and the seeds that are public."""

    list_display = fields = ("day", "commitment", "created_at", "revealed_at", "revealed_seed")
    ordering = ("-day",)


@admin.register(CheckInSwitch)
class CheckInSwitchAdmin(ReadOnlyAdmin):
    """Pause check-ins by adding a row that is not open, and end the pause by adding one that is."""

    list_display = ("id", "is_open", "reason", "actor", "created_at")
    list_select_related = ("actor",)
    ordering = ("-id",)
    fields = ("is_open", "reason")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("checkin.add_checkinswitch")

    def save_model(
        self, request: HttpRequest, obj: CheckInSwitch, form: ModelForm[Any], change: bool
    ) -> None:
        """Decide through the service."""
        actor = cast("ProfileOwner", request.user)
        made = switching.switch(is_open=obj.is_open, actor=actor, reason=obj.reason)
        obj.pk, obj._state.adding = made.pk, False
