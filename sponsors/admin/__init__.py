"""Sponsors and their policies in the admin: opened by one person, funded and given terms by two."""

from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminTextInputWidget

from credits.admin import AdjustForm
from gateway.admin import navigation
from gateway.admin.actions import Decision, ReasonedAction, ReasonedActions
from gateway.admin.approval_forms import ApprovedForm
from gateway.admin.base import ReadOnlyAdmin
from gateway.common.fields import Uint256Field
from gateway.staff import approvals
from gateway.staff.form_kinds import form_kind
from sponsors.admin.simulator import SimulatorPage
from sponsors.models import Policy, PolicyVersion, Sponsor, SponsoredCall, Usage, VoucherSigner
from sponsors.services import funding, policies, signers

navigation.register(
    "Sponsors",
    {
        "sponsors.Sponsor": "volunteer_activism",
        "sponsors.Policy": "rule",
        "sponsors.PolicyVersion": "history_edu",
        "sponsors.VoucherSigner": "signature",
        "sponsors.SponsoredCall": "send",
        "sponsors.Usage": "data_usage",
    },
)


def _fund(row: Sponsor, decision: Decision) -> str:
    moved = decision.answers["credits"]
    approval = funding.request(
        sponsor=row, credits=moved, key=decision.key(row), actor=decision.actor, reason=decision.reason
    )
    return approvals.outcome_of(approval, f"{moved:+d} credits were posted.")


FUND = ReasonedAction(
    name="fund_sponsor",
    label="Adjust credits",
    permission=funding.FUND.asks,
    effect=lambda row: f"For {row.name}, by an entry that names you and your reason.",
    run=_fund,
    form=AdjustForm,
    kind=funding.FUND,
)
FREEZE = ReasonedAction(
    name="freeze",
    label="Freeze",
    permission="sponsors.freeze_sponsor",
    effect=lambda row: "It pays for no new call from now on. Calls in progress are paid as accepted.",
    run=lambda row, decision: policies.freeze(row, is_frozen=True),
    applies_to=lambda row: not row.is_frozen,
)
THAW = ReasonedAction(
    name="thaw",
    label="End the freeze",
    permission="sponsors.freeze_sponsor",
    effect=lambda row: "Its policies pay for calls again.",
    run=lambda row, decision: policies.freeze(row, is_frozen=False),
    applies_to=lambda row: row.is_frozen,
)
SWITCH_OFF = ReasonedAction(
    name="switch_off",
    label="Switch off",
    permission="sponsors.freeze_sponsor",
    effect=lambda row: "It pays for no new call from now on; the sponsor's other policies do.",
    run=lambda row, decision: policies.enable(row, is_enabled=False),
    applies_to=lambda row: row.is_enabled,
)
SWITCH_ON = ReasonedAction(
    name="switch_on",
    label="Switch on",
    permission="sponsors.freeze_sponsor",
    effect=lambda row: "Its newest version pays for calls again.",
    run=lambda row, decision: policies.enable(row, is_enabled=True),
    applies_to=lambda row: not row.is_enabled,
)


@admin.register(Sponsor)
class SponsorAdmin(SimulatorPage):
    """Sponsors with their credits."""

    list_display = ("slug", "name", "is_frozen", "balance", "available", "created_at")
    list_select_related = ("credit_account",)
    search_fields = ("slug__exact",)
    readonly_fields = ("is_frozen", "balance", "available", "created_at")
    ordering = ("slug",)
    staff_actions = (FUND, FREEZE, THAW)

    def get_fields(self, request: HttpRequest, obj: Sponsor | None = None) -> tuple[str, ...]:
        return ("slug", "name", *(self.readonly_fields if obj else ()))

    @admin.display(description="balance")
    def balance(self, row: Sponsor) -> int:
        return row.credit_account.balance

    @admin.display(description="available")
    def available(self, row: Sponsor) -> int:
        return row.credit_account.available

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("sponsors.add_sponsor")

    def save_model(self, request: HttpRequest, obj: Sponsor, form: Any, change: bool) -> None:
        """Open the new sponsor's account with it."""
        funding.open_account(obj)


@admin.register(Policy)
class PolicyAdmin(ReasonedActions, ReadOnlyAdmin):
    """Policies; without a version, one pays for nothing."""

    list_display = ("id", "sponsor", "name", "position", "is_enabled", "created_at")
    list_select_related = ("sponsor",)
    search_fields = ("sponsor__slug__exact",)
    fields = ("sponsor", "name", "position")
    ordering = ("sponsor_id", "position", "id")
    staff_actions = (SWITCH_OFF, SWITCH_ON)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("sponsors.add_policy")


@admin.register(PolicyVersion)
class PolicyVersionAdmin(ApprovedForm, ReadOnlyAdmin):
    """Terms of policies. A new version is added after approval, counts at once, and is never changed."""

    saves = form_kind(
        name="add_policy_version",
        title="Add a version of a sponsor's policy",
        model=PolicyVersion,
        asks="sponsors.add_policyversion",
        decides="sponsors.decide_policyversion",
        save=policies.save_version,
    )
    list_display = (
        "id",
        "policy",
        "number",
        "profiles",
        "share_percent",
        "call_credits",
        "user_day_credits",
        "campaign_credits",
        "created_at",
    )
    list_select_related = ("policy",)
    exclude = ("number", "created_at")
    formfield_overrides: ClassVar = {Uint256Field: {"widget": UnfoldAdminTextInputWidget}}
    ordering = ("-id",)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("sponsors.add_policyversion")


REMOVE_SIGNER = ReasonedAction(
    name="remove_signer",
    label="Remove",
    permission="sponsors.freeze_sponsor",
    effect=lambda row: "Vouchers with its signature are refused from now on.",
    run=lambda row, decision: signers.remove(row),
)


@admin.register(VoucherSigner)
class VoucherSignerAdmin(ApprovedForm, ReasonedActions, ReadOnlyAdmin):
    """Addresses that sign sponsors' vouchers. A new one counts after approval; one person removes it."""

    saves = form_kind(
        name="add_voucher_signer",
        title="Add a signer of a sponsor's vouchers",
        model=VoucherSigner,
        asks="sponsors.add_vouchersigner",
        decides="sponsors.decide_policyversion",
        save=signers.save,
    )
    list_display = ("id", "sponsor", "address", "created_at")
    list_select_related = ("sponsor",)
    search_fields = ("sponsor__slug__exact",)
    ordering = ("-id",)
    staff_actions = (REMOVE_SIGNER,)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("sponsors.add_vouchersigner")


@admin.register(SponsoredCall)
class SponsoredCallAdmin(ReadOnlyAdmin):
    """The holds of each sponsored call, and what counts for it."""

    list_display = (
        "id",
        "version",
        "hold",
        "sponsor_hold",
        "counted_credits",
        "counted_calls",
        "accepted_at",
    )
    list_select_related = ("version", "hold", "sponsor_hold")
    ordering = ("-id",)


@admin.register(Usage)
class UsageAdmin(ReadOnlyAdmin):
    """What counts towards each limit of a policy."""

    list_display = ("id", "policy", "scope", "user_number", "begins", "credits", "calls")
    list_select_related = ("policy",)
    ordering = ("-id",)
