"""The admin of the relay: relayers, relay transactions and attempts are read-only, with actions for operations."""

import re
from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html

from credits.admin import CreditHoldAdmin
from credits.models import CreditHold
from gateway.admin import approvals, navigation
from gateway.admin.actions import Decision, ReasonedAction, ReasonedActions
from gateway.admin.admin import offer_pause
from gateway.admin.base import OwnedRows, ReadOnlyAdmin, ReadOnlyInline
from gateway.admin.exports import Column, Exportable
from gateway.admin.search import people_like
from gateway.chain.config import get_chain
from relay import queries
from relay.models import Attempt, Loss, Relayer, RelayTransaction, ReversedSettlement, TopUp
from relay.services import cancellation, losses, relayers
from relay.services.broadcasting import broadcast_again

navigation.register(
    "Relay",
    {
        "relay.RelayTransaction": "sync_alt",
        "relay.Attempt": "outbox",
        "relay.Relayer": "key",
        "relay.TopUp": "savings",
        "relay.Loss": "local_fire_department",
    },
)


def _set_active(row: Relayer, *, is_active: bool) -> str:
    changed = relayers.set_active(relayer_id=row.pk, is_active=is_active)
    state = "active" if is_active else "paused"
    return f"It is {state} from now on." if changed else f"It was {state} before."


PAUSE_RELAYER = ReasonedAction(
    name="pause",
    label="Pause",
    permission="relay.pause_relayer",
    effect=lambda row: f"It takes no new calls. Its {row.in_flight} account nonces in flight go on.",
    run=lambda row, decision: _set_active(row, is_active=False),
    applies_to=lambda row: row.is_active,
)
RESUME_RELAYER = ReasonedAction(
    name="resume",
    label="Resume",
    permission="relay.pause_relayer",
    effect=lambda row: (
        "Its key was used elsewhere. Resume it only if nobody else holds the key any more."
        if row.quarantined_at
        else "It takes new calls again."
    ),
    run=lambda row, decision: _set_active(row, is_active=True),
    applies_to=lambda row: not row.is_active and row.retired_at is None,
)


def _retire(row: Relayer, decision: Decision) -> str:
    if relayers.retire(relayer_id=row.pk, now=timezone.now()):
        return "It is retired. What it holds stays on its address."
    return "Nothing changed: it takes calls, or some of its calls are not settled yet."


def _ask_for_another(row: Relayer, decision: Decision) -> str:
    asked = relayers.request_relayer(actor=decision.actor, reason=decision.reason, key=decision.key(row))
    return approvals.outcome_of(asked, f"{asked.subject} is in service.")


def _ask_for_return(row: Relayer, decision: Decision) -> str:
    asked = relayers.request_return(
        relayer_id=row.pk, actor=decision.actor, reason=decision.reason, key=decision.key(row)
    )
    return approvals.outcome_of(asked, "It is back, paused.")


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
    effect=lambda row: "It is neither funded nor tracked any more. Pause it first and let its calls settle.",
    run=_retire,
    applies_to=lambda row: not row.is_active and row.retired_at is None,
)
BRING_BACK_RELAYER = ReasonedAction(
    name="bring_back",
    label="Bring back",
    permission="relay.add_spare_relayer",
    effect=lambda row: "It is tracked and funded again, and paused until somebody resumes it.",
    run=_ask_for_return,
    applies_to=lambda row: row.retired_at is not None,
    kind=relayers.RETURN,
)


def _broadcast_again(row: RelayTransaction, decision: Decision) -> str:
    taken = broadcast_again(relay_transaction_id=row.pk, now=timezone.now())
    return "The node took it." if taken else "The node did not take it; its attempts say why."


BROADCAST_AGAIN = ReasonedAction(
    name="broadcast_again",
    label="Broadcast again",
    permission="relay.rebroadcast_relaytransaction",
    effect=lambda row: (
        "The stored bytes go to the node once more. However often they are sent, they are mined once."
    ),
    run=_broadcast_again,
    reaches_out=True,
    applies_to=lambda row: row.is_in_progress,
)


def _cancel_unsent(row: RelayTransaction, decision: Decision) -> str:
    cancellation.cancel_unsent(relay_transaction_id=row.pk, now=timezone.now())
    return "A self-transfer uses up its account nonce; once that is confirmed, the hold is released."


CANCEL_UNSENT = ReasonedAction(
    name="cancel_unsent",
    label="Cancel unsent",
    permission="relay.cancel_relaytransaction",
    effect=lambda row: (
        "It is never broadcast. A self-transfer that the service pays uses up its account nonce; "
        f"then it ends as Cancelled and {row.hold.amount} credits are released. "
        "Calls behind it in its channel fail with it."
    ),
    run=_cancel_unsent,
    reaches_out=True,
    applies_to=cancellation.may_be_cancelled,
)


def _release(row: CreditHold, decision: Decision) -> str:
    cancellation.release(hold_id=row.pk, actor=decision.actor, reason=decision.reason, now=timezone.now())
    return f"{row.amount} credits are released."


RELEASE_ORPHANED_HOLD = ReasonedAction(
    name="release_orphaned_hold",
    label="Release",
    permission="relay.release_orphaned_hold",
    effect=lambda row: (
        f"{row.amount} credits are available to the user again. Nothing else can close this hold."
    ),
    run=_release,
    applies_to=lambda row: cancellation.orphaned_holds(now=timezone.now()).filter(pk=row.pk).exists(),
)


offer_pause(
    queries.RELAY,
    title="the whole relay",
    effect="New calls are refused with 503. Accepted calls are broadcast and settled.",
)

_HASH = re.compile(r"0x[0-9a-fA-F]{64}")


class AttemptInline(ReadOnlyInline[Attempt, RelayTransaction]):
    """The attempts of a relay transaction."""

    model = Attempt
    # Each is titled by its hash. The node's message comes first, the costs last.
    fields = readonly_fields = (
        "kind", "status", "succeeded", "node_message", "explorer", "account_nonce", "block_number", "gas_used",
        "effective_gas_price_wei",
    )  # fmt: skip
    ordering = ("sequence",)
    show_change_link = True

    @admin.display(description="explorer")
    def explorer(self, attempt: Attempt) -> str:
        page = get_chain().transaction_page(attempt.transaction_hash)
        return format_html('<a href="{}" rel="noreferrer noopener">open</a>', page) if page else "-"


class ReversedSettlementInline(ReadOnlyInline[ReversedSettlement, RelayTransaction]):
    """How a relay transaction had ended in blocks that disappeared."""

    model = ReversedSettlement
    fields = readonly_fields = (
        "number", "status", "failure_code", "real_cost", "block_number", "settled_at", "reversed_at",
    )  # fmt: skip
    ordering = ("number",)


@admin.register(RelayTransaction)
class RelayTransactionAdmin(Exportable, ReasonedActions, ReadOnlyAdmin):
    """Find a relay transaction by any hash or address."""

    export_columns = (
        Column("relay transaction", "pk"),
        Column("transaction hash", "transaction_hash"),
        Column("profile", "profile_address"),
        Column("controller", "controller_address"),
        Column("relayer", "relayer__address"),
        Column("status", "status"),
        Column("gas limit", "gas_limit"),
        Column("credits expected", "expected_cost"),
        Column("credits charged", "real_cost"),
        Column("refusal", "failure_code"),
        Column("request id", "request_id"),
        Column("accepted at", "created_at"),
        Column("settled at", "settled_at"),
    )

    list_display = (
        "created_at",
        "status",
        "transaction_hash",
        "profile_address",
        "expected_cost",
        "real_cost",
    )
    list_display_links = ("created_at", "transaction_hash")
    list_filter = ("status",)
    search_fields = ("request_id__exact",)
    search_help_text = "A transaction hash, a profile address whole or in part, or a request id."
    date_hierarchy = None
    ordering = ("-id",)
    list_defer = ("payload", "signature")
    inlines = (AttemptInline, ReversedSettlementInline)
    # The status and the failure come first: those are what users ask support about.
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "status",
                    "failure_code",
                    "failure_detail",
                    "transaction_hash",
                    "user",
                    "request_id",
                )
            },
        ),
        (
            "Cost",
            {"fields": ("expected_cost", "real_cost", "credits_before", "hold", "gas_limit")},
        ),
        ("Time", {"fields": ("created_at", "settled_at", "terminal_status")}),
        (
            "Relay call",
            {
                "fields": (
                    "chain_id",
                    "profile_address",
                    "key_manager_address",
                    "controller_address",
                    "digest",
                    "generation",
                    "channel",
                    "relay_nonce",
                    "validity",
                    "is_follower",
                    "relayer",
                )
            },
        ),
    )
    staff_actions = (BROADCAST_AGAIN, CANCEL_UNSENT)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[RelayTransaction], search_term: str
    ) -> tuple[QuerySet[RelayTransaction], bool]:
        term = search_term.strip()
        if _HASH.fullmatch(term):
            # Two steps, because an OR over a join can use no index.
            owners = Attempt.objects.with_hash(term).values("relay_transaction_id")
            return queryset.filter(pk__in=owners), False
        people = people_like(term)
        if people:
            return queryset.filter(user__in=people), False
        return super().get_search_results(request, queryset, term)


@admin.register(Attempt)
class AttemptAdmin(Exportable, ReadOnlyAdmin):
    """Every signed transaction, with what it cost the relayer."""

    export_columns = (
        Column("attempt", "pk"),
        Column("relay transaction", "relay_transaction_id"),
        Column("transaction hash", "transaction_hash"),
        Column("relayer", "relayer__address"),
        Column("account nonce", "account_nonce"),
        Column("kind", "kind"),
        Column("status", "status"),
        Column("succeeded", "succeeded"),
        Column("block", "block_number"),
        Column("gas used", "gas_used"),
        Column("gas price in wei", "effective_gas_price_wei"),
        Column("signed at", "created_at"),
    )

    list_display = (
        "created_at",
        "status",
        "kind",
        "succeeded",
        "transaction_hash",
        "relayer",
        "account_nonce",
    )
    list_display_links = ("created_at", "transaction_hash")
    list_filter = ("status", "kind")
    search_fields = ("transaction_hash__exact",)
    ordering = ("-id",)
    list_select_related = ("relayer",)
    list_defer = ("raw",)
    exclude = ("raw",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Attempt], search_term: str
    ) -> tuple[QuerySet[Attempt], bool]:
        if _HASH.fullmatch(search_term.strip()):
            return queryset.filter(pk__in=Attempt.objects.with_hash(search_term.strip()).values("pk")), False
        return super().get_search_results(request, queryset, search_term)


@admin.register(Relayer)
class RelayerAdmin(ReasonedActions, ReadOnlyAdmin):
    """The sending accounts; pause and resume take effect on the next call."""

    list_display = (
        "address",
        "state",
        "balance",
        "next_account_nonce",
        "mined_account_nonce",
        "synced_at",
    )
    ordering = ("id",)
    staff_actions = (PAUSE_RELAYER, RESUME_RELAYER, ADD_RELAYER, RETIRE_RELAYER, BRING_BACK_RELAYER)

    @admin.display(description="state", ordering="is_active")
    def state(self, relayer: Relayer) -> str:
        return relayer.state

    @admin.display(description="balance", ordering="balance_wei")
    def balance(self, relayer: Relayer) -> str:
        return get_chain().amount(relayer.balance_wei, places=4)


@admin.register(TopUp)
class TopUpAdmin(ReadOnlyAdmin):
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
        return get_chain().amount(row.amount_wei, places=4)


@admin.register(Loss)
class LossAdmin(OwnedRows):
    """Gas that no user pays for; above the list, what of the hour's budget is used and by whom."""

    owner_path = "user"
    list_before_template = "relay/losses.html"
    list_display = ("reserved_at", "kind", "profile", "reserved", "lost", "settled_at")
    list_filter = ("kind",)
    search_fields = ("key__exact",)
    search_help_text = "A profile address whole or in part, or a key."
    ordering = ("-id",)
    list_select_related = ("user",)

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        now = timezone.now()
        budget = losses.usage(now=now)
        return {
            **super().list_context(request),
            "budget": {
                "lost": _amount(budget.lost_wei),
                "reserved": _amount(budget.reserved_wei),
                "limit": _amount(budget.limit_wei),
                "percent": round(100 * budget.share),
                "is_used_up": budget.is_used_up,
            },
            "biggest_users": [
                {
                    "profile": row.profile_address,
                    "url": reverse("admin:users_user_change", args=[row.user_id]),
                    "lost": _amount(row.lost_wei),
                    "reserved": _amount(row.reserved_wei),
                }
                for row in losses.biggest_users(since=now - timedelta(days=1))
            ],
        }

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Loss], search_term: str
    ) -> tuple[QuerySet[Loss], bool]:
        people = people_like(search_term.strip())
        if people:
            return queryset.filter(user__in=people), False
        return super().get_search_results(request, queryset, search_term)

    @admin.display(description="profile")
    def profile(self, row: Any) -> str:
        return super().profile(row) if row.user else "-"

    @admin.display(description="reserved", ordering="reserved_wei")
    def reserved(self, loss: Loss) -> str:
        return _amount(loss.reserved_wei)

    @admin.display(description="lost", ordering="lost_wei")
    def lost(self, loss: Loss) -> str:
        return "-" if loss.lost_wei is None else _amount(loss.lost_wei)


def _amount(wei: int) -> str:
    return get_chain().amount(wei, places=6)


# Only the relay can tell which of its holds are orphaned.
admin.site.unregister(CreditHold)


@admin.register(CreditHold)
class OrphanedHoldAdmin(ReasonedActions, CreditHoldAdmin):
    """Holds, with the release of orphaned ones."""

    staff_actions = (RELEASE_ORPHANED_HOLD,)
