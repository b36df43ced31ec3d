"""Adjustments that staff requested: those that wait for a second person, and what became of the others."""

from django.contrib import admin

from credits.admin import actions
from credits.admin.ledger import OwnedAdmin
from credits.models import AdjustmentRequest
from gateway.common.staff_actions import ReasonedActions


@admin.register(AdjustmentRequest)
class AdjustmentRequestAdmin(ReasonedActions, OwnedAdmin):
    """Approved or rejected by somebody other than the requester."""

    owner_path = "user"
    list_display = (
        "id",
        "profile",
        "credits",
        "decision",
        "needs_second_person",
        "requested_by",
        "decided_by",
        "reason",
        "created_at",
    )
    list_filter = ("decision", "needs_second_person")
    list_select_related = ("user", "requested_by", "decided_by")
    staff_actions = (actions.APPROVE_ADJUSTMENT, actions.REJECT_ADJUSTMENT)
