"""Staff see relayers, relay transactions and attempts; they edit only whose code is trusted."""

import re

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html

from credits.admin.ledger import CreditHoldAdmin
from credits.models import CreditHold
from gateway.chain.config import get_chain
from gateway.common.address_search import people_like
from gateway.common.admin import ReadOnlyAdmin, ReadOnlyInline, StaffAdmin
from gateway.common.exports import Column, Exportable
from gateway.common.staff_actions import ReasonedActions
from relay.admin import actions
from relay.models import Attempt, Relayer, RelaySwitch, RelayTransaction, TrustedImplementation

_HASH = re.compile(r"0x[0-9a-fA-F]{64}")


class AttemptInline(ReadOnlyInline[Attempt, RelayTransaction]):
    """The attempts of a relay transaction."""

    model = Attempt
    # Each is titled by its hash. The node's words come first, the costs last.
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
        Column("refusal", "end_code"),
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
    inlines = (AttemptInline,)
    # How and why it ended comes first: that is what support is asked about.
    fieldsets = (
        (None, {"fields": ("status", "end_code", "end_detail", "transaction_hash", "user", "request_id")}),
        (
            "Cost",
            {"fields": ("expected_cost", "real_cost", "credits_before", "hold", "gas_limit")},
        ),
        ("Time", {"fields": ("created_at", "settled_at", "ends_as")}),
        (
            "What was asked",
            {
                "fields": (
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
    staff_actions = (actions.BROADCAST_AGAIN, actions.CANCEL_UNSENT)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[RelayTransaction], search_term: str
    ) -> tuple[QuerySet[RelayTransaction], bool]:
        term = search_term.strip()
        if _HASH.fullmatch(term):
            # Two steps, because an OR over a join can use no index.
            owners = Attempt.objects.filter(transaction_hash=term.lower()).values("relay_transaction_id")
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
        return super().get_search_results(request, queryset, search_term.lower())


@admin.register(Relayer)
class RelayerAdmin(ReasonedActions, ReadOnlyAdmin):
    """The sending accounts; pause and resume take effect on the next call."""

    list_display = (
        "address",
        "is_active",
        "balance",
        "next_account_nonce",
        "mined_account_nonce",
        "synced_at",
    )
    ordering = ("id",)
    staff_actions = (actions.PAUSE_RELAYER, actions.RESUME_RELAYER)

    @admin.display(description="balance", ordering="balance_wei")
    def balance(self, relayer: Relayer) -> str:
        return get_chain().amount(relayer.balance_wei, places=4)


@admin.register(TrustedImplementation)
class TrustedImplementationAdmin(StaffAdmin[TrustedImplementation]):
    """Implementations whose code the service pays gas for."""

    list_display = ("name", "kind", "address", "code_hash", "is_active")
    list_filter = ("kind", "is_active")
    ordering = ("kind", "name")


# The ledger knows no relay, and only the relay knows which of its holds are dead.
admin.site.unregister(CreditHold)


@admin.register(CreditHold)
class DeadHoldAdmin(ReasonedActions, CreditHoldAdmin):
    """Holds, with the release of those that nothing can close any more."""

    staff_actions = (actions.RELEASE_DEAD_HOLD,)


@admin.register(RelaySwitch)
class RelaySwitchAdmin(ReasonedActions, ReadOnlyAdmin):
    """Every pause of the whole relay, and every end of one."""

    list_display = ("id", "is_open", "reason", "actor", "created_at")
    list_select_related = ("actor",)
    ordering = ("-id",)
    staff_actions = (actions.PAUSE_RELAY, actions.RESUME_RELAY)
