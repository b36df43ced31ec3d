"""Check-ins, seeds, and the switch."""

from django.contrib import admin

from checkin.admin import actions
from checkin.models import CheckIn, CheckInSwitch, DailySeed
from credits.admin.ledger import OwnedAdmin
from gateway.common.admin import ReadOnlyAdmin
from gateway.common.staff_actions import ReasonedActions


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
class CheckInSwitchAdmin(ReasonedActions, ReadOnlyAdmin):
    """Every pause of check-ins, and every end of one."""

    list_display = ("id", "is_open", "reason", "actor", "created_at")
    list_select_related = ("actor",)
    ordering = ("-id",)
    staff_actions = (actions.PAUSE, actions.RESUME)
