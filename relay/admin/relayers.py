"""Relayers and their top-ups in the admin, with the actions that put a relayer into service or take it out."""

from django.contrib import admin

from gateway.admin.actions import Decision, ReasonedAction, ReasonedActions
from gateway.admin.base import ReadOnlyAdmin
from gateway.admin.of_chains import OfChains
from gateway.chain.config import chain_of
from gateway.common import clock
from gateway.staff import approvals
from relay.models import Relayer, TopUp
from relay.services.fleet import relayers


def _set_active(row: Relayer, *, is_active: bool) -> str:
    changed = relayers.set_active(relayer_id=row.pk, is_active=is_active)
    state = "active" if is_active else "paused"
    return f"It is {state} now." if changed else f"It was {state} already."


PAUSE_RELAYER = ReasonedAction(
    name="pause",
    label="Pause",
    permission="relay.pause_relayer",
    effect=lambda row: f"It takes no new calls. Its {row.in_flight} transactions in flight continue.",
    run=lambda row, decision: _set_active(row, is_active=False),
    applies_to=lambda row: row.is_active,
)
RESUME_RELAYER = ReasonedAction(
    name="resume",
    label="Resume",
    permission="relay.pause_relayer",
    effect=lambda row: (
        "Its key was used elsewhere. Resume it only if no other party has the key."
        if row.quarantined_at
        else "It takes new calls again."
    ),
    run=lambda row, decision: _set_active(row, is_active=True),
    applies_to=lambda row: not row.is_active and row.retired_at is None,
)


def _retire(row: Relayer, decision: Decision) -> str:
    if relayers.retire(relayer_id=row.pk, now=clock.now()):
        return "It is retired. Its balance stays at its address."
    return "Nothing changed: it is not paused, or some of its calls are not settled."


def _ask_for_another(row: Relayer, decision: Decision) -> str:
    approval = relayers.request_relayer(actor=decision.actor, reason=decision.reason, key=decision.key(row))
    return approvals.outcome_of(approval, f"{approval.subject} is in service.")


def _ask_for_return(row: Relayer, decision: Decision) -> str:
    approval = relayers.request_return(
        relayer_id=row.pk, actor=decision.actor, reason=decision.reason, key=decision.key(row)
    )
    return approvals.outcome_of(approval, "It is back in service, paused.")


ADD_RELAYER = ReasonedAction(
    name="add",
    label="Add a relayer",
    permission="relay.add_spare_relayer",
    subject="Relayers",
    effect=lambda row: "The next spare key takes calls as soon as its account is funded.",
    run=_ask_for_another,
    kind=relayers.ADD,
)
RETIRE_RELAYER = ReasonedAction(
    name="retire",
    label="Retire",
    permission="relay.add_spare_relayer",
    effect=lambda row: "It is no longer funded or tracked. Pause it first and let its calls settle.",
    run=_retire,
    applies_to=lambda row: not row.is_active and row.retired_at is None,
)
BRING_BACK_RELAYER = ReasonedAction(
    name="bring_back",
    label="Bring back",
    permission="relay.add_spare_relayer",
    effect=lambda row: "It is tracked and funded again, and stays paused until staff resume it.",
    run=_ask_for_return,
    applies_to=lambda row: row.retired_at is not None,
    kind=relayers.RETURN,
)


@admin.register(Relayer)
class RelayerAdmin(OfChains, ReasonedActions, ReadOnlyAdmin):
    """The sending accounts; pause and resume take effect on the next call."""

    list_display = (
        "address",
        "state",
        "balance",
        "next_account_nonce",
        "mined_account_nonce",
        "synced_at",
    )
    search_fields = ("address__exact",)
    search_help_text = "The whole address of a relayer."
    ordering = ("id",)
    staff_actions = (PAUSE_RELAYER, RESUME_RELAYER, ADD_RELAYER, RETIRE_RELAYER, BRING_BACK_RELAYER)

    @admin.display(description="state", ordering="is_active")
    def state(self, relayer: Relayer) -> str:
        return relayer.state

    @admin.display(description="balance", ordering="balance_wei")
    def balance(self, relayer: Relayer) -> str:
        return chain_of(relayer.chain_id).amount(relayer.balance_wei, places=4)


@admin.register(TopUp)
class TopUpAdmin(OfChains, ReadOnlyAdmin):
    """Every transfer from the treasury to a relayer."""

    list_display = ("created_at", "status", "relayer", "amount", "treasury_address", "transaction_hash")
    list_display_links = ("created_at", "transaction_hash")
    list_filter = ("status",)
    list_select_related = ("relayer",)
    list_defer = ("raw",)
    exclude = ("raw",)
    search_fields = ("transaction_hash__exact",)
    ordering = ("-id",)

    @admin.display(description="amount", ordering="amount_wei")
    def amount(self, row: TopUp) -> str:
        return chain_of(row.chain_id).amount(row.amount_wei, places=4)
