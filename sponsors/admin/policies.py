"""Policies of sponsors in the admin, with the signers of vouchers and the verifiers that they trust."""

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Max, QuerySet
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminTextInputWidget

from gateway.admin import columns
from gateway.admin.actions import ReasonedAction, ReasonedActions
from gateway.admin.approval_forms import ApprovedForm
from gateway.admin.base import AppendOnlyAdmin, ReadOnlyInline
from gateway.common.fields import Uint256Field
from gateway.staff.form_kinds import form_kind
from sponsors.models import Policy, PolicyVersion, Sponsor, Verifier, VoucherSigner
from sponsors.services import policies, signers, verifiers

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


@admin.register(Policy)
class PolicyAdmin(ReasonedActions, AppendOnlyAdmin):
    """Policies of sponsors. A policy without a version pays for nothing."""

    list_display = ("id", "sponsor", "name", "position", "is_enabled", "created_at")
    list_select_related = ("sponsor",)
    search_fields = ("sponsor__slug__exact",)
    fields = ("sponsor", "name", "position")
    ordering = ("sponsor_id", "position", "id")
    staff_actions = (SWITCH_OFF, SWITCH_ON)


@admin.register(PolicyVersion)
class PolicyVersionAdmin(ApprovedForm, AppendOnlyAdmin):
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


REMOVE_SIGNER = ReasonedAction(
    name="remove_signer",
    label="Remove",
    permission="sponsors.freeze_sponsor",
    effect=lambda row: "Vouchers with its signature are refused from now on.",
    run=lambda row, decision: signers.remove(row),
    applies_to=lambda row: row.removed_at is None,
)


@admin.register(VoucherSigner)
class VoucherSignerAdmin(ApprovedForm, ReasonedActions, AppendOnlyAdmin):
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
    fields = ("sponsor", "address")
    ordering = ("-id",)
    staff_actions = (REMOVE_SIGNER,)


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
    effect=lambda row: (
        "The server gets no more requests, and policies that require its response pay for nothing."
    ),
    run=lambda row, decision: verifiers.remove(row),
    applies_to=lambda row: row.removed_at is None,
)


@admin.register(Verifier)
class VerifierAdmin(ApprovedForm, ReasonedActions, AppendOnlyAdmin):
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
