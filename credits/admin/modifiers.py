"""Temporary bonuses: who has which, until when, and the end of one that was given by mistake."""

from django.contrib import admin
from django.utils import timezone

from credits.admin.ledger import OwnedAdmin
from credits.models import Modifier
from credits.services import modifiers
from gateway.common.decisions import Decision, ReasonedAction
from gateway.common.staff_actions import ReasonedActions


def _end(row: Modifier, decision: Decision) -> str:
    modifiers.end(modifier_id=row.pk)
    return "It has ended."


END_MODIFIER = ReasonedAction(
    name="end",
    label="End modifier",
    permission="credits.add_modifier",
    effect=lambda row: (
        f"{row.user.profile_address} loses +{row.value} of {row.get_modifier_type_display()} at once, "
        f"and not at {row.expires_at:%Y-%m-%d %H:%M} UTC. What was earned with it stays. "
        "To correct a modifier, end it and grant another."
    ),
    run=_end,
    changes=lambda row: {"expires_at": (str(row.expires_at), "now")},
    applies_to=lambda row: row.expires_at > timezone.now(),
)


@admin.register(Modifier)
class ModifierAdmin(ReasonedActions, OwnedAdmin):
    """One is given by an action on a person's page, and ends by itself or by an action here."""

    owner_path = "user"
    staff_actions = (END_MODIFIER,)
    list_display = (
        "id",
        "profile",
        "modifier_type",
        "value",
        "created_at",
        "expires_at",
        "reason",
        "given_by",
    )
    list_filter = ("modifier_type", ("expires_at", admin.DateFieldListFilter))
    list_select_related = ("actor",)

    @admin.display(description="given by")
    def given_by(self, modifier: Modifier) -> str:
        return str(modifier.actor or "")
