"""Sponsors and their policies in the admin: one person opens a sponsor; funds and terms need a second approval."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import Max, QuerySet
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from credits.admin import AdjustForm
from gateway.admin import columns, navigation
from gateway.admin.actions import Decision, ReasonedAction, ReasonedActions, ReasonForm
from gateway.admin.approval_forms import ApprovedForm
from gateway.admin.base import ReadOnlyAdmin, ReadOnlyInline
from gateway.common import clock
from gateway.common.fields import SAFE_INTEGER_MAX, Uint256Field, checksum
from gateway.staff import approvals
from gateway.staff.form_kinds import form_kind
from sponsors.admin.simulator import SimulatorPage
from sponsors.admin.transfers import TransferAdmin
from sponsors.models import (
    ApiKey,
    Member,
    Policy,
    PolicyVersion,
    RefusalCount,
    Sponsor,
    SponsoredCall,
    Usage,
    Verifier,
    VoucherSigner,
)
from sponsors.services import funding, keys, members, policies, signers, verifiers

__all__ = ["TransferAdmin"]

navigation.register(
    "Sponsors",
    {
        "sponsors.Sponsor": "volunteer_activism",
        "sponsors.Member": "group",
        "sponsors.ApiKey": "key",
        "sponsors.Policy": "rule",
        "sponsors.PolicyVersion": "history_edu",
        "sponsors.VoucherSigner": "signature",
        "sponsors.Verifier": "fact_check",
        "sponsors.SponsoredCall": "send",
        "sponsors.Transfer": "move_down",
        "sponsors.Usage": "data_usage",
        "sponsors.RefusalCount": "block",
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
    effect=lambda row: f"Posts an entry to the account of {row.name}, with your name and your reason.",
    run=_fund,
    form=AdjustForm,
    kind=funding.FUND,
)


class MemberForm(ReasonForm):
    """A profile and its role."""

    profile = forms.CharField(
        max_length=42,
        widget=UnfoldAdminTextInputWidget(),
        help_text="The address of a profile that has signed in here before.",
    )
    role = forms.ChoiceField(
        choices=Member.Role.choices, initial=Member.Role.OWNER, widget=UnfoldAdminSelectWidget()
    )
    field_order = ("profile", "role", "reason")

    def clean_profile(self) -> str:
        """Return the address in EIP-55 form."""
        try:
            return checksum(self.cleaned_data["profile"].strip())
        except ValueError as error:
            raise ValidationError("Enter a 20-byte hex address.") from error


def _put_member(row: Sponsor, decision: Decision) -> str:
    profile, role = decision.answers["profile"], decision.answers["role"]
    members.put(sponsor=row, profile_address=profile, role=role)
    return f"{profile} is now a member with the role {role}."


PUT_MEMBER = ReasonedAction(
    name="put_member",
    label="Add a member",
    permission="sponsors.add_member",
    effect=lambda row: f"The person can act for {row.name} from now on, with this role.",
    run=_put_member,
    form=MemberForm,
)


class AlarmForm(ReasonForm):
    """The alarm."""

    credits = forms.IntegerField(
        min_value=1,
        max_value=SAFE_INTEGER_MAX,
        required=False,
        widget=UnfoldAdminTextInputWidget(),
        help_text="Its members are told when fewer credits are left. Empty for never.",
    )
    field_order = ("credits", "reason")


def _set_alarm(row: Sponsor, decision: Decision) -> str:
    limit = decision.answers["credits"]
    funding.set_alarm(row, credits=limit)
    return f"Its alarm is at {limit} credits." if limit else "It has no alarm."


SET_ALARM = ReasonedAction(
    name="set_alarm",
    label="Set the alarm",
    permission="sponsors.add_sponsor",
    effect=lambda row: (
        f"Its members hear when {row.name} has fewer credits than this, and when it has them again."
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
SWITCH_OFF = ReasonedAction(
    name="switch_off",
    label="Switch off",
    permission="sponsors.freeze_sponsor",
    effect=lambda row: "The policy pays for no new calls. The sponsor's other policies still do.",
    run=lambda row, decision: policies.enable(row, is_enabled=False),
    applies_to=lambda row: row.is_enabled,
)
SWITCH_ON = ReasonedAction(
    name="switch_on",
    label="Switch on",
    permission="sponsors.freeze_sponsor",
    effect=lambda row: "The policy's newest version pays for calls again.",
    run=lambda row, decision: policies.enable(row, is_enabled=True),
    applies_to=lambda row: not row.is_enabled,
)


class PolicyInline(ReadOnlyInline[Policy, Sponsor]):
    """The sponsor's policies in the order in which they are checked."""

    model = Policy
    fields = readonly_fields = ("name", "position", "is_enabled", "newest_version", "created_at")
    ordering = ("position", "pk")
    show_change_link = True

    def get_queryset(self, request: HttpRequest) -> QuerySet[Policy]:
        return super().get_queryset(request).annotate(newest_version=Max("versions__number"))

    @admin.display(description="newest version")
    def newest_version(self, row: Any) -> int | None:
        number: int | None = row.newest_version
        return number


@admin.register(Sponsor)
class SponsorAdmin(SimulatorPage):
    """Sponsors with their credits."""

    list_display = ("slug", "name", "is_frozen", "is_default", "balance", "available", "created_at")
    list_select_related = ("credit_account",)
    search_fields = ("slug__exact",)
    readonly_fields = (
        "is_frozen",
        "is_default",
        "balance",
        "available",
        "alarm_credits",
        "created_at",
    )
    ordering = ("slug",)
    staff_actions = (FUND, PUT_MEMBER, SET_ALARM, FREEZE, THAW, MAKE_DEFAULT, END_DEFAULT)
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

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("sponsors.add_sponsor")

    def save_model(self, request: HttpRequest, obj: Sponsor, form: Any, change: bool) -> None:
        """Save the new sponsor together with its credit account."""
        funding.open_account(obj)


def _remove_member(row: Member, decision: Decision) -> str:
    members.remove(member=row)
    return "The membership has ended."


REMOVE_MEMBER = ReasonedAction(
    name="remove_member",
    label="Remove",
    permission="sponsors.add_member",
    effect=lambda row: f"The person can no longer act for {row.sponsor.name}.",
    run=_remove_member,
)


@admin.register(Member)
class MemberAdmin(ReasonedActions, ReadOnlyAdmin):
    """Members of sponsors. Staff add the first owner on the sponsor's page; owners add and invite others."""

    list_display = ("id", "sponsor", "user", "email", "role", "created_at")
    list_select_related = ("sponsor", "user")
    search_fields = ("sponsor__slug__exact",)
    ordering = ("sponsor_id", "id")
    staff_actions = (REMOVE_MEMBER,)


def _revoke_key(row: ApiKey, decision: Decision) -> str:
    keys.revoke(key=row, now=clock.now())
    return "The key was revoked."


REVOKE_KEY = ReasonedAction(
    name="revoke_key",
    label="Revoke",
    permission="sponsors.freeze_sponsor",
    effect=lambda row: "Requests with this key are refused from now on.",
    run=_revoke_key,
    applies_to=lambda row: row.revoked_at is None,
)


@admin.register(ApiKey)
class ApiKeyAdmin(ReasonedActions, ReadOnlyAdmin):
    """API keys of sponsors' servers, which members create and rotate."""

    list_display = ("id", "sponsor", "name", "hint", "scopes", "last_used_at", "expires_at", "revoked_at")
    list_select_related = ("sponsor",)
    search_fields = ("sponsor__slug__exact",)
    exclude = ("key_hash",)
    ordering = ("-id",)
    staff_actions = (REVOKE_KEY,)


@admin.register(Policy)
class PolicyAdmin(ReasonedActions, ReadOnlyAdmin):
    """Policies of sponsors. A policy without a version pays for nothing."""

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
    """Terms of policies. A new version needs approval, applies at once, and is never changed."""

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
    list_select_related = ("policy__sponsor",)
    exclude = ("number", "created_at")
    formfield_overrides: ClassVar = {Uint256Field: {"widget": UnfoldAdminTextInputWidget}}
    ordering = ("-id",)

    def get_field_queryset(self, db: Any, db_field: Any, request: HttpRequest) -> QuerySet[Any] | None:
        if db_field.name == "policy":
            return Policy.objects.select_related("sponsor").order_by("sponsor__slug", "position", "pk")
        return super().get_field_queryset(db, db_field, request)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("sponsors.add_policyversion")


REMOVE_SIGNER = ReasonedAction(
    name="remove_signer",
    label="Remove",
    permission="sponsors.freeze_sponsor",
    effect=lambda row: "Vouchers with its signature are refused from now on.",
    run=lambda row, decision: signers.remove(row),
    applies_to=lambda row: row.removed_at is None,
)


@admin.register(VoucherSigner)
class VoucherSignerAdmin(ApprovedForm, ReasonedActions, ReadOnlyAdmin):
    """Addresses that sign sponsors' vouchers. Adding one needs approval; removing one does not."""

    saves = form_kind(
        name="add_voucher_signer",
        title="Add a signer of a sponsor's vouchers",
        model=VoucherSigner,
        asks="sponsors.add_vouchersigner",
        decides="sponsors.decide_policyversion",
        save=signers.save,
    )
    list_display = ("id", "sponsor", "address", "created_at", "removed_at")
    list_select_related = ("sponsor",)
    search_fields = ("sponsor__slug__exact",)
    ordering = ("-id",)
    staff_actions = (REMOVE_SIGNER,)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("sponsors.add_vouchersigner")


CREATE_SECRET = ReasonedAction(
    name="create_secret",
    label="Create a secret",
    permission="sponsors.add_verifier",
    effect=lambda row: "The new secret is shown once. It replaces the current secret at once.",
    run=lambda row, decision: columns.shown_once("It signs questions.", verifiers.create_secret(row)),
    applies_to=lambda row: row.removed_at is None,
)
REMOVE_VERIFIER = ReasonedAction(
    name="remove_verifier",
    label="Remove",
    permission="sponsors.freeze_sponsor",
    effect=lambda row: "The server is no longer asked, and policies that require its answer pay for nothing.",
    run=lambda row, decision: verifiers.remove(row),
    applies_to=lambda row: row.removed_at is None,
)


@admin.register(Verifier)
class VerifierAdmin(ApprovedForm, ReasonedActions, ReadOnlyAdmin):
    """Sponsors' servers that decide about calls. Adding one needs approval; removing one does not."""

    saves = form_kind(
        name="add_verifier",
        title="Add a verifier of a sponsor",
        model=Verifier,
        asks="sponsors.add_verifier",
        decides="sponsors.decide_policyversion",
        save=verifiers.save,
    )
    list_display = ("id", "sponsor", "url", "created_at", "removed_at")
    list_select_related = ("sponsor",)
    search_fields = ("sponsor__slug__exact",)
    fields = ("sponsor", "url")
    ordering = ("-id",)
    staff_actions = (CREATE_SECRET, REMOVE_VERIFIER)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("sponsors.add_verifier")


@admin.register(SponsoredCall)
class SponsoredCallAdmin(ReadOnlyAdmin):
    """The holds of each sponsored call, and the usage that it counts."""

    list_display = (
        "id",
        "version",
        "hold",
        "sponsor_hold",
        "counted_credits",
        "counted_calls",
        "accepted_at",
    )
    list_select_related = ("version__policy__sponsor", "hold", "sponsor_hold")
    ordering = ("-id",)


@admin.register(Usage)
class UsageAdmin(ReadOnlyAdmin):
    """Credits and calls counted towards each limit of a policy."""

    list_display = ("id", "policy", "scope", "user_number", "begins", "credits", "calls")
    list_select_related = ("policy__sponsor",)
    ordering = ("-id",)


@admin.register(RefusalCount)
class RefusalCountAdmin(ReadOnlyAdmin):
    """How many requests each rule refused."""

    list_display = ("id", "sponsor", "day", "rule", "requests")
    list_select_related = ("sponsor",)
    search_fields = ("sponsor__slug__exact",)
    ordering = ("-id",)
