"""What support and finance see of the ledger: everything, and no button that changes a row."""

from functools import reduce
from operator import or_
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from credits.admin import actions
from credits.models import Allowance, CreditAccount, CreditEntry, CreditHold
from gateway.common.address_search import people_like
from gateway.common.admin import OwnedRows
from gateway.common.exports import Column, Exportable
from gateway.common.staff_actions import ReasonedActions


class OwnedAdmin(OwnedRows):
    """Rows of one user each, found by the whole profile address, its beginning or its end, in any casing."""

    ordering = ("-id",)

    def get_search_fields(self, request: HttpRequest) -> list[str]:
        # Makes the search box appear; what it finds is decided below.
        return [f"{self.owner_path}__profile_address", *super().get_search_fields(request)]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        people = people_like(term)
        if people:
            return queryset.filter(**{f"{self.owner_path}__in": people}), False
        # Each of its own columns has an index; together with the address they would use none.
        own = [Q(**{lookup: term}) for lookup in self.search_fields]
        return (queryset.filter(reduce(or_, own)) if own else queryset.none()), False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        # Django leaves `list_select_related` alone once anything is joined.
        others = () if isinstance(self.list_select_related, bool) else self.list_select_related
        return super().get_queryset(request).select_related(self.owner_path, *others)


@admin.register(CreditAccount)
class CreditAccountAdmin(ReasonedActions, OwnedAdmin):
    owner_path = "user"
    staff_actions = (
        actions.adjust_credits(lambda account: account.user),
        actions.grant_modifier(lambda account: account.user),
    )
    list_display = ("id", "profile", "balance", "held", "available", "version", "created_at")


@admin.register(CreditEntry)
class CreditEntryAdmin(Exportable, OwnedAdmin):
    owner_path = "account__user"
    export_columns = (
        Column("entry", "pk"),
        Column("profile", "account__user__profile_address"),
        Column("source", "source"),
        Column("amount", "amount"),
        Column("balance before", "balance_before"),
        Column("balance after", "balance_after"),
        Column("key", "key"),
        Column("reason", "reason"),
        Column("at", "created_at"),
    )
    list_display = (
        "id",
        "created_at",
        "profile",
        "source",
        "amount",
        "balance_after",
        "reason",
    )
    list_filter = ("source",)
    search_fields = ("key__startswith",)


@admin.register(CreditHold)
class CreditHoldAdmin(OwnedAdmin):
    owner_path = "account__user"
    list_display = ("id", "profile", "status", "amount", "captured_amount", "key", "created_at", "closed_at")
    list_filter = ("status",)
    search_fields = ("key__startswith",)


@admin.register(Allowance)
class AllowanceAdmin(OwnedAdmin):
    owner_path = "user"
    list_display = ("id", "profile", "credits", "starts_at", "ends_at", "resets_at", "renews")
    list_filter = ("renews",)
