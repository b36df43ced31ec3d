"""The ledger's holds in the admin; staff can release orphaned relay holds here."""

from django.contrib import admin

from credits.admin import CreditHoldAdmin
from credits.models import CreditHold
from gateway.admin.actions import Decision, ReasonedAction, ReasonedActions
from gateway.common import clock
from relay.services.sending import cancellation


def _release(row: CreditHold, decision: Decision) -> str:
    cancellation.release(hold_id=row.pk, actor=decision.actor, reason=decision.reason, now=clock.now())
    return f"{row.amount} credits are released."


RELEASE_ORPHANED_HOLD = ReasonedAction(
    name="release_orphaned_hold",
    label="Release",
    permission="relay.release_orphaned_hold",
    effect=lambda row: (
        f"{row.amount} credits become available to the user again. Nothing else can close this hold."
    ),
    run=_release,
    applies_to=lambda row: cancellation.orphaned_holds(now=clock.now()).filter(pk=row.pk).exists(),
)

# Only the relay knows which of its holds are orphaned.
admin.site.unregister(CreditHold)


@admin.register(CreditHold)
class OrphanedHoldAdmin(ReasonedActions, CreditHoldAdmin):
    """Holds, with an action that releases orphaned ones."""

    staff_actions = (RELEASE_ORPHANED_HOLD,)
