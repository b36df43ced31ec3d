"""The approval queue: waiting requests with their changes, and the outcome of closed ones."""

from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.contenttypes.models import ContentType
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from gateway.admin import columns
from gateway.admin.actions import Decision, ReasonedAction, ReasonedActions
from gateway.admin.base import ReadOnlyAdmin, one_of
from gateway.admin.mixins import staff_of
from gateway.staff import approval_kinds, approvals
from gateway.staff.models import ApprovalRequest

Status = ApprovalRequest.Status


def _refusal(approval: ApprovalRequest, actor: Any) -> str:
    obstacle = approval_kinds.obstacle(approval, actor)
    return obstacle.detail if obstacle else ""


def _waits(approval: ApprovalRequest) -> bool:
    return ApprovalRequest.objects.waiting().filter(pk=approval.pk).exists()


def _summary(approval: ApprovalRequest) -> SafeString:
    return format_html(
        "{} for {}, requested by {} ({}): {}{}",
        approval_kinds.kind_of(approval).title,
        approval.subject,
        approval.requested_by,
        ", ".join(approval.requested_roles) or "no role",
        approval.reason,
        _lines(approval),
    )


def _lines(approval: ApprovalRequest) -> SafeString:
    # Uses the cache of content types; the relation would cost a query for each row.
    kind = ContentType.objects.get_for_id(approval.content_type_id)
    lines = columns.lines(kind.model_class(), approval.changes)
    return format_html_join("", '<div class="whitespace-nowrap">{}</div>', ((line,) for line in lines))


def _approve(approval: ApprovalRequest, decision: Decision) -> str:
    return approvals.approve(request_id=approval.pk, actor=decision.actor, reason=decision.reason)


def _reject(approval: ApprovalRequest, decision: Decision) -> str:
    approvals.reject(request_id=approval.pk, actor=decision.actor, reason=decision.reason)
    return "Nothing is done."


APPROVE = ReasonedAction(
    name="approve",
    label="Approve",
    permission="gateway_admin.decide_approvalrequest",
    effect=lambda approval: format_html("Done at once: {}", _summary(approval)),
    run=_approve,
    applies_to=_waits,
    refusal=_refusal,
)
REJECT = ReasonedAction(
    name="reject",
    label="Reject",
    permission="gateway_admin.decide_approvalrequest",
    effect=lambda approval: format_html("Never done: {}", _summary(approval)),
    run=_reject,
    applies_to=_waits,
    refusal=_refusal,
)


class _State(admin.SimpleListFilter):
    """Filters by status; waiting requests by default."""

    title, parameter_name = "state", "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("mine", "Waits for me"), ("decided", "Decided"), ("expired", "Expired"), ("all", "All")]

    def choices(self, changelist: Any) -> Any:
        yield {
            "selected": self.value() is None,
            "query_string": changelist.get_query_string(remove=[self.parameter_name]),
            "display": "Waits for a second person",
        }
        yield from list(super().choices(changelist))[1:]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        waiting = queryset.model._default_manager.waiting().values("pk")
        match self.value():
            case "all":
                return queryset
            case "decided":
                return queryset.exclude(status=Status.WAITING)
            case "expired":
                return queryset.filter(status=Status.WAITING).exclude(pk__in=waiting)
            case "mine":
                return queryset.filter(approvals.waits_for(staff_of(request)), pk__in=waiting)
            case _:
                return queryset.filter(pk__in=waiting)


class ApprovalRequestAdmin(ReasonedActions, ReadOnlyAdmin):
    """All requests that need a second person."""

    list_display = ("created_at", "what", "whom", "changed", "reason", "requested_by", "state", "expires_at")
    list_display_links = ("created_at", "what")
    list_filter = (
        _State,
        one_of("kind", lambda: [kind.name for kind in approval_kinds.kinds()], word=approval_kinds.title_of),
    )
    list_select_related = ("requested_by",)
    list_defer = ("payload",)
    ordering = ("-pk",)
    staff_actions: ClassVar[tuple[ReasonedAction, ...]] = (APPROVE, REJECT)
    fields = readonly_fields = (
        "what", "about", "changed", "reason", "requested_by", "requested_roles", "state", "needs_second_person",
        "made", "pool", "amount", "decided_by", "decision_reason", "created_at", "expires_at", "decided_at",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        is_open = ExpressionWrapper(
            Q(status=Status.WAITING, expires_at__gt=Now()), output_field=BooleanField()
        )
        rows: QuerySet[Any] = super().get_queryset(request).annotate(is_open=is_open)
        return rows

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        actor = staff_of(request)
        decided = approval_kinds.decided_by(actor)
        titles = [kind.title for kind in approval_kinds.kinds() if kind.name in decided]
        may = (
            f"You may decide: {'; '.join(sorted(titles))}."
            if titles
            else "Your roles cannot decide requests."
        )
        own = "You cannot decide your own requests or those of your role."
        return {**super().list_context(request), "approval_notice": f"{may} {own}"}

    def form_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        context = super().form_context(request, row)
        if row is not None and _waits(row):
            refusal = _refusal(row, staff_of(request))
            context["approval_notice"] = refusal or "It waits for a decision that you may make."
        return context

    @admin.display(description="what")
    def what(self, approval: ApprovalRequest) -> str:
        return approval_kinds.kind_of(approval).title

    @admin.display(description="about", ordering="subject")
    def whom(self, approval: ApprovalRequest) -> str:
        """Return the subject; an address is shortened as wallets do."""
        is_address = approval.subject.startswith("0x")
        return f"{approval.subject[:6]}…{approval.subject[-4:]}" if is_address else approval.subject

    @admin.display(description="from → to")
    def changed(self, approval: ApprovalRequest) -> SafeString:
        return _lines(approval)

    @admin.display(description="state")
    def state(self, approval: ApprovalRequest) -> str:
        is_expired = approval.status == Status.WAITING and not approval.is_open  # type: ignore[attr-defined]
        return "Expired" if is_expired else approval.get_status_display()

    @admin.display(description="about")
    def about(self, approval: ApprovalRequest) -> str | SafeString:
        return _linked(approval.content_type, approval.object_id, approval.subject)

    @admin.display(description="made")
    def made(self, approval: ApprovalRequest) -> str | SafeString:
        """Link to the created row, or to its list while a worker still has to create it."""
        if approval.made_type is not None:
            row = approval.made_type.get_all_objects_for_this_type(pk=approval.made_id).first()
            return _linked(
                approval.made_type, approval.made_id, f"{approval.made_type.name} {row or approval.made_id}"
            )
        if approval.status != Status.DONE or approval.object_id:
            return ""
        kind = approval.content_type
        rows = reverse(f"admin:{kind.app_label}_{kind.model}_changelist")
        return format_html('<a href="{}?q={}">{} {}</a>', rows, approval.subject, kind.name, approval.subject)


def _linked(kind: ContentType, pk: str, name: str) -> str | SafeString:
    try:
        url = reverse(f"admin:{kind.app_label}_{kind.model}_change", args=[pk])
    except NoReverseMatch:
        return name
    return format_html('<a href="{}">{}</a>', url, name)
