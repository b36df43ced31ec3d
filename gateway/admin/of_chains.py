"""Lists of rows that belong to chains: with several chains, each row names its chain, and a filter chooses one."""

from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from gateway.chain.config import chain_of, chains


class ChainFilter(admin.SimpleListFilter):
    """The chain of a row, by `chain_id`."""

    title, parameter_name = "chain", "chain"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(str(chain.id), chain.name) for chain in chains()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = self.value() or ""
        return queryset.filter(chain_id=int(chosen)) if chosen.isdecimal() else queryset


class OfChains:
    """Adds the column and the filter to an admin of rows with `chain_id`. With one chain, its list stays as it is."""

    def get_list_display(self, request: HttpRequest) -> Any:
        named = list(super().get_list_display(request))  # type: ignore[misc]  # a mixin of ModelAdmin
        return [*named, "chain"] if len(chains()) > 1 else named

    def get_list_filter(self, request: HttpRequest) -> Any:
        named = list(super().get_list_filter(request))  # type: ignore[misc]  # a mixin of ModelAdmin
        return [*named, ChainFilter] if len(chains()) > 1 else named

    @admin.display(description="chain", ordering="chain_id")
    def chain(self, row: Model) -> str:
        return chain_of(row.chain_id).name  # type: ignore[attr-defined]  # only rows of chains are listed
