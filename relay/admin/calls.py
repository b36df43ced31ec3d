"""Relay transactions and their attempts, with the actions on a transaction."""

from collections.abc import Sequence

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from credits.models import CreditEntry
from credits.services import adjustments
from gateway.admin import columns
from gateway.admin.actions import Decision, ReasonedAction, ReasonedActions
from gateway.admin.base import ReadOnlyAdmin, ReadOnlyInline
from gateway.admin.exports import Column, Exportable
from gateway.admin.of_chains import OfChains
from gateway.admin.search import MOST, people_like
from gateway.chain.config import chain_of
from gateway.chain.errors import CallRefused
from gateway.common import clock
from gateway.staff import approvals
from gateway.staff.models import ApprovalRequest
from relay.models import (
    COPY_TAKEN,
    DEPLOYED_FIRST,
    HASH_PART,
    OVERTAKEN,
    PREDECESSOR_FAILED,
    Attempt,
    FinalBlock,
    RelayTransaction,
    ReversedSettlement,
)
from relay.payloads import told
from relay.services.sending import cancellation
from relay.services.sending.broadcasting import broadcast_again

# A partial index covers exactly these statuses.
_UNSUCCESSFUL = (
    RelayTransaction.Status.FAILED,
    RelayTransaction.Status.EXPIRED,
    RelayTransaction.Status.CANCELLED,
)
# The API's failure codes, in words for staff.
REASONS = {
    **{refusal.code: refusal.title for refusal in CallRefused.__subclasses__()},
    "reverted": "Reverted without a reason",
    PREDECESSOR_FAILED: "A call before it failed",
    "refused-by-node": "The node refused it",
    "not-mined-in-time": "Not mined in time",
    "cancelled-by-staff": "Cancelled by staff",
    "relay-call-expired": "Its validity had ended",
    "relay-nonce-used": "Another call used its nonce",
    "account-nonce-lost": "The relayer's nonce was used elsewhere",
    OVERTAKEN: "Overtaken by a reopened call",
    DEPLOYED_FIRST: "Somebody else deployed the profile first",
    COPY_TAKEN: "A copy was deployed first, with removed keys",
    "copy-taken-charged": "A copy was deployed first, with removed keys; charged",
    "deployment-reverted": "The factory reverted it",
}


def _broadcast_again(row: RelayTransaction, decision: Decision) -> str:
    taken = broadcast_again(relay_transaction_id=row.pk, now=clock.now())
    return "The node accepted it." if taken else "The node did not accept it; see its attempts."


BROADCAST_AGAIN = ReasonedAction(
    name="broadcast_again",
    label="Broadcast again",
    permission="relay.rebroadcast_relaytransaction",
    effect=lambda row: "The stored bytes are sent to the node again. They can be mined only once.",
    run=_broadcast_again,
    reaches_out=True,
    applies_to=lambda row: row.is_in_progress,
)


def _cancel_unsent(row: RelayTransaction, decision: Decision) -> str:
    cancellation.cancel_unsent(relay_transaction_id=row.pk, now=clock.now())
    return "A self-transfer uses up its account nonce. Once it is confirmed, the hold is released."


CANCEL_UNSENT = ReasonedAction(
    name="cancel_unsent",
    label="Cancel unsent",
    permission="relay.cancel_relaytransaction",
    effect=lambda row: (
        "It will not be broadcast. A self-transfer that the service pays uses up its account nonce; "
        f"then it ends as Cancelled and {row.hold.amount} credits are released. "
        "Calls behind it in its channel fail too."
    ),
    run=_cancel_unsent,
    reaches_out=True,
    applies_to=cancellation.may_be_cancelled,
)


def told_of(call: RelayTransaction) -> str:
    """Return what the call did, for the script that tells it in words."""
    return told(bytes(call.payload), currency=chain_of(call.chain_id).currency)


_GIVEN_BACK = "call-given-back"


def _charged(call: RelayTransaction) -> int:
    """Return the credits that the call cost its user, less its cashback."""
    charge = call.hold.entry
    if charge is None:
        return 0
    back = CreditEntry.objects.filter(key=f"back:{charge.key}").first()
    return -charge.amount - (back.amount if back else 0)


def _key_of_giving_back(call: RelayTransaction) -> str:
    """Return a key that is the same for everybody while a request waits or is carried out, so a call is paid once."""
    own = ApprovalRequest.objects.filter(key__startswith=f"{_GIVEN_BACK}:{call.pk}:")
    refused = own.exclude(pk__in=own.filter(status=ApprovalRequest.Status.DONE)).exclude(
        pk__in=ApprovalRequest.objects.waiting().values("pk")
    )
    return f"{_GIVEN_BACK}:{call.pk}:{refused.count()}"


def _is_given_back(call: RelayTransaction) -> bool:
    return ApprovalRequest.objects.filter(key=_key_of_giving_back(call)).exists()


def _is_final(call: RelayTransaction) -> bool:
    """Return whether no reorganisation can undo the call; that would give its credits back as well."""
    carrier = call.attempts.filter(status=Attempt.Status.MINED).first()
    if carrier is None or carrier.block_number is None:
        return True
    return FinalBlock.objects.filter(chain_id=call.chain_id, number__gte=carrier.block_number).exists()


def _give_back(call: RelayTransaction, decision: Decision) -> str:
    amount = _charged(call)
    approval = adjustments.request(
        user=call.user,
        credits=amount,
        key=_key_of_giving_back(call),
        actor=decision.actor,
        reason=decision.reason,
    )
    return approvals.outcome_of(approval, f"{amount:+,d} credits were posted.")


def _reason_of(rows: Sequence[RelayTransaction]) -> dict[str, str]:
    call, *others = rows
    why = (
        columns.word_of(call.failure_code).lower() if call.failure_code else call.get_status_display().lower()
    )
    return (
        {}
        if others
        else {"reason": f"Call {call.transaction_hash[:10]}… ({why}): its credits are given back."}
    )


GIVE_BACK = ReasonedAction(
    name="give_back",
    label="Give these credits back",
    permission=adjustments.ADJUST.asks,
    effect=lambda call: (
        f"{_charged(call):+,d} credits: what the call cost, less its cashback. Once for each call."
    ),
    run=_give_back,
    initial=_reason_of,
    applies_to=lambda call: _charged(call) > 0 and _is_final(call) and not _is_given_back(call),
    kind=adjustments.ADJUST,
    person=lambda call: call.user,
)


def _ids_of(part: str) -> list[int]:
    """Return the ids of the first relay transactions with an attempt whose hash matches."""
    owners = Attempt.objects.with_hash_like(part).order_by("transaction_hash")
    return list(owners.values_list("relay_transaction_id", flat=True)[:MOST])


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
        page = chain_of(attempt.chain_id).transaction_page(attempt.transaction_hash)
        return format_html('<a href="{}" rel="noreferrer noopener">open</a>', page) if page else "-"


class ReversedSettlementInline(ReadOnlyInline[ReversedSettlement, RelayTransaction]):
    """Earlier outcomes of a relay transaction, in blocks that disappeared."""

    model = ReversedSettlement
    fields = readonly_fields = (
        "number", "status", "failure_code", "real_cost", "block_number", "settled_at", "reversed_at",
    )  # fmt: skip
    ordering = ("number",)


@admin.register(RelayTransaction)
class RelayTransactionAdmin(OfChains, Exportable, ReasonedActions, ReadOnlyAdmin):
    """Find a relay transaction by any hash or address."""

    export_columns = (
        Column("relay transaction", "pk"),
        Column("chain", "chain_id"),
        Column("transaction hash", "transaction_hash"),
        Column("profile", "profile_address"),
        Column("controller", "controller_address"),
        Column("relayer", "relayer__address"),
        Column("status", "status"),
        Column("gas limit", "gas_limit"),
        Column("wei of a credit", "credit_wei"),
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
        "why",
        "transaction_hash",
        "profile",
        "expected_cost",
        "real_cost",
    )
    list_display_links = ("created_at", "transaction_hash")
    list_filter = (
        columns.worded("status", lambda: RelayTransaction.Status.values),
        columns.worded("failure_code", lambda: REASONS, title="why", within={"status__in": _UNSUCCESSFUL}),
    )
    search_fields = ("request_id__exact",)
    search_help_text = (
        "A hash or its beginning, a profile (name#1234 or a part of its address), or a request id."
    )
    date_hierarchy = None
    ordering = ("-id",)
    list_defer = ("payload", "signature")
    inlines = (AttemptInline, ReversedSettlementInline)
    # The status and the failure come first, because users ask support about them.
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "did",
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
            {"fields": ("expected_cost", "real_cost", "captured", "credits_before", "hold", "gas_limit")},
        ),
        ("Time", {"fields": ("created_at", "settled_at", "terminal_status")}),
        (
            "Relay call",
            {
                "fields": (
                    "chain_id",
                    "deploys_profile",
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
    readonly_fields = ("did", "captured")
    staff_actions = (GIVE_BACK, BROADCAST_AGAIN, CANCEL_UNSENT)

    @admin.display(description="profile", ordering="profile_address")
    def profile(self, call: RelayTransaction) -> SafeString:
        """Link to the user who sent the call. The call's row has the address, so this needs no join."""
        page = reverse("admin:users_user_change", args=[call.user_id])
        return format_html('<a href="{}">{}</a>', page, columns.short(call.profile_address))

    @admin.display(description="what it did")
    def did(self, call: RelayTransaction) -> SafeString:
        """Return a place that the script of the account page fills with its own sentence."""
        return format_html('<span data-deeds="{}"></span>', told_of(call))

    @admin.display(description="captured")
    def captured(self, call: RelayTransaction) -> SafeString | str:
        """Return the credits that the user was charged, and the part that came back as cashback."""
        captured = call.hold.captured_amount
        if captured is None:
            return columns.NOTHING
        back = captured - _charged(call)
        return format_html(
            "{}{}", columns.number(captured), f", {back:,} of them back as cashback" if back else ""
        )

    @admin.display(description="why", ordering="failure_code")
    def why(self, call: RelayTransaction) -> str | SafeString:
        """Return the reason of a failure or cancellation in words, with the full detail as its title."""
        if not call.failure_code:
            return ""
        word = columns.word_of(call.failure_code)
        return format_html('<span title="{}">{}</span>', call.failure_detail, word)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[RelayTransaction], search_term: str
    ) -> tuple[QuerySet[RelayTransaction], bool]:
        term = search_term.strip()
        people = people_like(term)
        # In two steps, because a condition with OR across a join cannot use an index.
        begun = _ids_of(term)
        if people or begun:
            return queryset.filter(Q(user__in=people) | Q(pk__in=begun)), False
        return super().get_search_results(request, queryset, term)


@admin.register(Attempt)
class AttemptAdmin(OfChains, Exportable, ReadOnlyAdmin):
    """Every signed transaction, with its cost for the relayer."""

    export_columns = (
        Column("attempt", "pk"),
        Column("chain", "chain_id"),
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
        if HASH_PART.fullmatch(search_term.strip()):
            attempts = Attempt.objects.with_hash_like(search_term.strip())
            return queryset.filter(pk__in=attempts.values("pk")), False
        return super().get_search_results(request, queryset, search_term)
