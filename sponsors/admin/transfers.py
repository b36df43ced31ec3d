"""Transfers from people to sponsors in the admin. Two members of staff move a waiting transfer; one can refuse it."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from gateway.admin.actions import Decision, ReasonedAction, ReasonedActions
from gateway.admin.base import ReadOnlyAdmin, ReadOnlyInline
from gateway.common import clock
from gateway.staff import approvals
from sponsors.models import Transfer, TransferredLot
from sponsors.services import transfers


def _ask(row: Transfer, decision: Decision) -> str:
    approval = transfers.request(
        transfer=row, actor=decision.actor, reason=decision.reason, key=decision.key(row)
    )
    return approvals.outcome_of(approval, f"{row.credits:,} credits were moved.")


def _refuse(row: Transfer, decision: Decision) -> str:
    transfers.refuse(row, now=clock.now())
    return "The transfer is refused."


def _is_waiting(row: Transfer) -> bool:
    return row.status == Transfer.Status.WAITING


MOVE = ReasonedAction(
    name="move_transfer",
    label="Move the credits",
    permission=transfers.MOVE.asks,
    effect=lambda row: f"{row.credits:,} paid credits of the person go to sponsor {row.sponsor.slug}.",
    run=_ask,
    applies_to=_is_waiting,
    kind=transfers.MOVE,
)
REFUSE = ReasonedAction(
    name="refuse_transfer",
    label="Refuse",
    permission=transfers.MOVE.asks,
    effect=lambda row: "Nothing moves, and the transfer ends.",
    run=_refuse,
    applies_to=_is_waiting,
)


class LotInline(ReadOnlyInline[TransferredLot, Transfer]):
    """The payments that the credits came from."""

    model = TransferredLot
    fields = readonly_fields = ("lot", "out_entry", "in_entry", "credits", "clawed_back")
    ordering = ("pk",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[TransferredLot]:
        return super().get_queryset(request).select_related("lot", "out_entry", "in_entry")


@admin.register(Transfer)
class TransferAdmin(ReasonedActions, ReadOnlyAdmin):
    """Paid credits that members transferred to sponsors, or want to."""

    list_display = ("id", "sponsor", "user", "credits", "status", "created_at", "ended_at")
    list_select_related = ("sponsor", "user")
    search_fields = ("sponsor__slug__exact",)
    fields = ("sponsor", "user", "credits", "status", "created_at", "ended_at")
    ordering = ("-id",)
    staff_actions = (MOVE, REFUSE)
    inlines = (LotInline,)
