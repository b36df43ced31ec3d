"""The ledger in the admin: read-only rows, and adjustments as actions with a reason."""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminIntegerFieldWidget

from credits.models import (
    LARGEST_ADJUSTMENT,
    Allowance,
    CreditEntry,
    CreditHold,
    EntrySource,
    ExpiringLot,
    ExpiryRule,
    HoldStatus,
    UnbackedCeiling,
    UnbackedDay,
)
from credits.services import adjustments
from gateway.admin import columns, navigation
from gateway.admin.actions import Decision, ReasonedAction, ReasonedActions, ReasonForm
from gateway.admin.approval_forms import ApprovedForm
from gateway.admin.base import AppendOnlyAdmin, OwnedRows, ReadOnlyAdmin
from gateway.admin.exports import Column, Exportable
from gateway.admin.search import people_like
from gateway.staff import approvals
from gateway.staff.approval_kinds import AboveCeiling
from gateway.staff.form_kinds import form_kind
from users.models import User

navigation.register(
    "Credits",
    {
        "credits.CreditAccount": "account_balance_wallet",
        "credits.CreditEntry": "receipt_long",
        "credits.CreditHold": "lock_clock",
        "credits.Allowance": "event_repeat",
        "credits.ExpiryRule": "timer",
        "credits.ExpiringLot": "hourglass_bottom",
        "credits.UnbackedCeiling": "vertical_align_top",
        "credits.UnbackedDay": "today",
        "credits.ReconciliationRun": "fact_check",
    },
)

columns.describe(
    {
        EntrySource.SUBSCRIBED_PAYOUT: "Subscription",
        EntrySource.CREDIT_PURCHASE: "Bought",
        EntrySource.VIDEO_ADS: "Videos",
        EntrySource.OFFERWALL: "Offers",
        EntrySource.CREDITS_BACK: "Cashback",
        EntrySource.RELAY_REVERSAL: "Reversed by a reorganisation",
        EntrySource.EARNING_REVERSAL: "Taken back by the ad network",
        EntrySource.PAYOUT_CLAWBACK: "Payment refunded",
        EntrySource.STAFF_ADJUSTMENT: "Adjusted by staff",
        EntrySource.CREDIT_EXPIRY: "Expired",
        EntrySource.FIRST_CREDITS: "First credits of a new profile",
        EntrySource.DEBT_TRANSFER: "Debt of an earlier account",
    }
)
columns.colour("waiting", HoldStatus.HELD)

Owner = Callable[[Any], User]


class AdjustForm(ReasonForm):
    credits = forms.IntegerField(
        min_value=-LARGEST_ADJUSTMENT,
        max_value=LARGEST_ADJUSTMENT,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="Whole credits; negative to take away.",
    )
    field_order = ("credits", "reason")

    def clean_credits(self) -> int:
        moved: int = self.cleaned_data["credits"]
        if not moved:
            raise forms.ValidationError("An adjustment must be at least one credit.")
        return moved


def adjust_credits(owner: Owner) -> ReasonedAction:
    def run(row: Any, decision: Decision) -> str:
        moved = decision.inputs["credits"]
        approval = adjustments.request(
            user=owner(row),
            credits=moved,
            key=decision.key(row),
            actor=decision.actor,
            reason=decision.reason,
        )
        return approvals.outcome_of(approval, f"{moved:+d} credits were posted.")

    return ReasonedAction(
        name="adjust_credits",
        label="Adjust credits",
        permission=adjustments.ADJUST.asks,
        effect=lambda row: f"For {owner(row).profile_address}, by an entry that names you and your reason.",
        run=run,
        form=AdjustForm,
        applies_to=lambda row: _has_profile(owner(row)),
        kind=adjustments.ADJUST,
        person=owner,
    )


def _has_profile(owner: User | None) -> bool:
    """Return whether the row's owner is a person with a profile; a sponsor's account has no user."""
    return owner is not None and owner.profile_address is not None


class OwnedAdmin(OwnedRows):
    """
    Rows of an account that a user owns, or a sponsor.

    Staff can search them by a complete profile address, its beginning or its end, in any casing.
    """

    ordering = ("-id",)

    def get_search_fields(self, request: HttpRequest) -> list[str]:
        # Shows the search box; the search itself is implemented below.
        return [f"{self.owner_path}__profile_address", *super().get_search_fields(request)]

    def find_rows(self, rows: QuerySet[Any], term: str) -> QuerySet[Any]:
        people = people_like(term)
        if people:
            return rows.filter(**{f"{self.owner_path}__in": people})
        # Each column has its own index. Combined with the address in one condition, none would be used.
        own = [Q(**{lookup: term}) for lookup in self.search_fields]
        return rows.filter(reduce(or_, own)) if own else rows.none()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        # Django ignores `list_select_related` once a query has joins.
        others = () if isinstance(self.list_select_related, bool) else self.list_select_related
        return super().get_queryset(request).select_related(self.owner_path, *others)


class CreditAccountAdmin(ReasonedActions, Exportable, OwnedAdmin):
    """Accounts with their balances; `backoffice` registers a subclass with data of other apps."""

    owner_path = "user"
    staff_actions: ClassVar[Sequence[ReasonedAction]] = (adjust_credits(lambda account: account.user),)
    list_display = ("id", "profile", "balance", "held", "available", "version", "created_at")
    export_columns = (
        Column("account", "pk"),
        Column("profile", "user__profile_address"),
        Column("balance", "balance"),
        Column("held", "held"),
        Column("entries", "version"),
        Column("at", "created_at"),
    )


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
    list_display = ("id", "created_at", "profile", "source", "amount", "balance_after", "reason")
    list_filter = (columns.worded("source", lambda: EntrySource.values),)
    search_fields = ("key__startswith",)


@admin.register(ExpiryRule)
class ExpiryRuleAdmin(ApprovedForm, AppendOnlyAdmin):
    """Rules for when given credits expire. A new rule needs approval; a rule is never changed or deleted."""

    saves = form_kind(
        name="set_expiry",
        title="Set the expiry of given credits",
        model=ExpiryRule,
        asks="credits.add_expiryrule",
        decides="credits.decide_expiryrule",
    )
    list_display = ("valid_from", "days", "created_at")
    ordering = ("-valid_from",)


@admin.register(ExpiringLot)
class ExpiringLotAdmin(OwnedAdmin):
    """Lots of given credits whose expiry was announced."""

    owner_path = "entry__account__user"
    list_display = ("id", "profile", "entry", "credits", "expires_at", "announced_at")
    list_select_related = ("entry__account__user",)


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


def _check_ceiling(ceiling: UnbackedCeiling) -> None:
    most = settings.APPROVAL_LIMITS["credits"]["ceiling"]
    if ceiling.credits > most:
        raise AboveCeiling(f"The service gives at most {most:,} unbacked credits a day.")


@admin.register(UnbackedCeiling)
class UnbackedCeilingAdmin(ApprovedForm, AppendOnlyAdmin):
    """Ceilings on new debt and check-in credits. A new ceiling needs approval and is in force at once."""

    saves = form_kind(
        name="add_unbacked_ceiling",
        title="Add a ceiling on unbacked credits",
        model=UnbackedCeiling,
        asks="credits.add_unbackedceiling",
        decides="credits.decide_unbackedceiling",
        check=_check_ceiling,
    )
    list_display = ("id", "credits", "created_at")
    ordering = ("-id",)


@admin.register(UnbackedDay)
class UnbackedDayAdmin(ReadOnlyAdmin):
    list_display = ("day", "debt", "check_ins")
    ordering = ("-day",)
