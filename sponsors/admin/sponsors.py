"""Sponsors in the admin, with their credits and their alarm."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminTextInputWidget

from credits.admin import AdjustForm
from gateway.admin.actions import Decision, ReasonedAction, ReasonForm
from gateway.common.fields import SAFE_INTEGER_MAX
from gateway.staff import approvals
from sponsors.admin.members import PUT_MEMBER
from sponsors.admin.policies import PolicyInline
from sponsors.admin.simulator import SimulatorPage
from sponsors.models import Sponsor
from sponsors.services import budgets, funding, policies


def _fund(row: Sponsor, decision: Decision) -> str:
    moved = decision.inputs["credits"]
    approval = funding.request(
        sponsor=row, credits=moved, key=decision.key(row), actor=decision.actor, reason=decision.reason
    )
    return approvals.outcome_of(approval, f"{moved:+d} credits were posted.")


FUND = ReasonedAction(
    name="fund_sponsor",
    label="Adjust credits",
    permission=funding.FUND.asks,
    effect=lambda row: f"Posts an entry to the account of {row.name}, with your name and your reason.",
    run=_fund,
    form=AdjustForm,
    kind=funding.FUND,
)


class AlarmForm(ReasonForm):
    """The alarm."""

    credits = forms.IntegerField(
        min_value=1,
        max_value=SAFE_INTEGER_MAX,
        required=False,
        widget=UnfoldAdminTextInputWidget(),
        help_text="Its members are notified when fewer credits are left. Empty for never.",
    )
    field_order = ("credits", "reason")


def _set_alarm(row: Sponsor, decision: Decision) -> str:
    limit = decision.inputs["credits"]
    funding.set_alarm(row, credits=limit)
    return f"Its alarm is at {limit} credits." if limit else "It has no alarm."


SET_ALARM = ReasonedAction(
    name="set_alarm",
    label="Set the alarm",
    permission="sponsors.add_sponsor",
    effect=lambda row: (
        f"Its members are notified when {row.name} has fewer credits than this, and when it has them again."
    ),
    run=_set_alarm,
    form=AlarmForm,
    initial=lambda rows: {"credits": rows[0].alarm_credits if len(rows) == 1 else None},
)
FREEZE = ReasonedAction(
    name="freeze",
    label="Freeze",
    permission="sponsors.freeze_sponsor",
    effect=lambda row: "The sponsor pays for no new calls. It still pays for calls in progress.",
    run=lambda row, decision: policies.freeze(row, is_frozen=True),
    applies_to=lambda row: not row.is_frozen,
)
THAW = ReasonedAction(
    name="thaw",
    label="End the freeze",
    permission="sponsors.freeze_sponsor",
    effect=lambda row: "The sponsor's policies pay for calls again.",
    run=lambda row, decision: policies.freeze(row, is_frozen=False),
    applies_to=lambda row: row.is_frozen,
)
MAKE_DEFAULT = ReasonedAction(
    name="make_default",
    label="Make it the default",
    permission="sponsors.add_sponsor",
    effect=lambda row: (
        "Calls of users without credits are offered to this sponsor if no other sponsor pays; its policies decide. It "
        "replaces the current default."
    ),
    run=lambda row, decision: policies.make_default(row, is_default=True),
    applies_to=lambda row: not row.is_default,
)
END_DEFAULT = ReasonedAction(
    name="end_default",
    label="Remove as default",
    permission="sponsors.add_sponsor",
    effect=lambda row: "Only calls that name this sponsor are offered to it.",
    run=lambda row, decision: policies.make_default(row, is_default=False),
    applies_to=lambda row: row.is_default,
)


class BudgetForm(ReasonForm):
    """The budget."""

    day = forms.IntegerField(
        label="Credits a day",
        min_value=1,
        max_value=SAFE_INTEGER_MAX,
        required=False,
        widget=UnfoldAdminTextInputWidget(),
        help_text="UTC. Leave both empty to end the budget; staff then decide about each policy.",
    )
    month = forms.IntegerField(
        label="Credits a month",
        min_value=1,
        max_value=SAFE_INTEGER_MAX,
        required=False,
        widget=UnfoldAdminTextInputWidget(),
        help_text="UTC.",
    )
    field_order = ("day", "month", "reason")

    def clean(self) -> dict[str, Any]:
        """Refuse half a budget."""
        fields: dict[str, Any] = super().clean() or {}
        if (fields.get("day") is None) != (fields.get("month") is None):
            raise ValidationError("A budget has both parts, or none.")
        return fields


def _set_budget(row: Sponsor, decision: Decision) -> str:
    approval = budgets.request(
        sponsor=row,
        day=decision.inputs["day"],
        month=decision.inputs["month"],
        key=decision.key(row),
        actor=decision.actor,
        reason=decision.reason,
    )
    return approvals.outcome_of(approval, "The budget was set.")


SET_BUDGET = ReasonedAction(
    name="set_budget",
    label="Set the budget",
    permission=budgets.SET_BUDGET.asks,
    effect=lambda row: (
        f"{row.name} pays at most this in a day and a month. Its owners change its policies and signers alone."
    ),
    run=_set_budget,
    form=BudgetForm,
    kind=budgets.SET_BUDGET,
    initial=lambda rows: (
        {"day": rows[0].day_credits, "month": rows[0].month_credits} if len(rows) == 1 else {}
    ),
)


@admin.register(Sponsor)
class SponsorAdmin(SimulatorPage):
    """Sponsors with their credits."""

    list_display = ("slug", "name", "is_frozen", "is_default", "balance", "available", "created_at")
    list_select_related = ("credit_account", "opened_by")
    search_fields = ("slug__exact",)
    readonly_fields = (
        "is_frozen",
        "is_default",
        "balance",
        "available",
        "alarm_credits",
        "day_credits",
        "month_credits",
        "opened_by",
        "created_at",
    )
    ordering = ("slug",)
    staff_actions = (FUND, SET_BUDGET, PUT_MEMBER, SET_ALARM, FREEZE, THAW, MAKE_DEFAULT, END_DEFAULT)
    inlines = (PolicyInline,)

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        return self.inlines if obj else ()

    def get_fields(self, request: HttpRequest, obj: Sponsor | None = None) -> tuple[str, ...]:
        return ("slug", "name", *(self.readonly_fields if obj else ()))

    @admin.display(description="balance")
    def balance(self, row: Sponsor) -> int:
        return row.credit_account.balance

    @admin.display(description="available")
    def available(self, row: Sponsor) -> int:
        return row.credit_account.available

    def save_model(self, request: HttpRequest, obj: Sponsor, form: Any, change: bool) -> None:
        """Save the new sponsor together with its credit account."""
        funding.open_account(obj)
