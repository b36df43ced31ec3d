"""Staff see relayers, relay transactions and attempts; they change only whose code is trusted."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from gateway.common.admin import ReadOnlyAdmin
from relay.models import Attempt, Relayer, RelayTransaction, TrustedImplementation


class AttemptInline(admin.TabularInline[Attempt, RelayTransaction]):
    """The attempts of a relay transaction."""

    model = Attempt
    extra = 0
    can_delete = False
    fields = readonly_fields = (
        "transaction_hash", "kind", "status", "account_nonce", "sequence", "succeeded", "gas_used",
        "effective_gas_price_wei", "block_number", "node_message",
    )  # fmt: skip

    def has_add_permission(self, request: HttpRequest, obj: RelayTransaction | None = None) -> bool:
        return False


@admin.register(RelayTransaction)
class RelayTransactionAdmin(ReadOnlyAdmin):
    """Find a relay transaction by any hash or address."""

    list_display = (
        "transaction_hash",
        "profile_address",
        "status",
        "expected_cost",
        "real_cost",
        "created_at",
    )
    list_filter = ("status",)
    search_fields = ("=transaction_hash", "=attempts__transaction_hash", "=profile_address", "=request_id")
    date_hierarchy = None
    ordering = ("-id",)
    list_select_related = ("user",)
    inlines = (AttemptInline,)


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    """Every signed transaction."""

    list_display = (
        "transaction_hash",
        "relayer",
        "account_nonce",
        "kind",
        "status",
        "succeeded",
        "created_at",
    )
    list_filter = ("status", "kind")
    search_fields = ("=transaction_hash",)
    ordering = ("-id",)
    list_select_related = ("relayer",)
    exclude = ("raw",)


@admin.register(Relayer)
class RelayerAdmin(ReadOnlyAdmin):
    """The sending accounts; pause and resume take effect on the next call."""

    list_display = (
        "address",
        "is_active",
        "next_account_nonce",
        "mined_account_nonce",
        "balance_wei",
        "synced_at",
    )
    ordering = ("id",)
    actions = ("pause", "resume")

    @admin.action(description="Pause: take no new calls")
    def pause(self, request: HttpRequest, queryset: QuerySet[Relayer]) -> None:
        """Stop giving new calls to the chosen relayers; what is in flight goes on."""
        queryset.update(is_active=False)

    @admin.action(description="Resume")
    def resume(self, request: HttpRequest, queryset: QuerySet[Relayer]) -> None:
        """Let the chosen relayers take calls again."""
        queryset.update(is_active=True)


@admin.register(TrustedImplementation)
class TrustedImplementationAdmin(admin.ModelAdmin[TrustedImplementation]):
    """Whose code the service pays gas for."""

    list_display = ("name", "kind", "address", "code_hash", "is_active")
    list_filter = ("kind", "is_active")
    ordering = ("kind", "name")
