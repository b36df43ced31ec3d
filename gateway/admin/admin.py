"""The audit log, pauses, and pages of other packages on our base classes: roles, second factors, login attempts."""

from importlib import import_module
from typing import Any, ClassVar

from axes.admin import AccessAttemptAdmin, AccessFailureLogAdmin, AccessLogAdmin
from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from gateway.admin import columns, navigation
from gateway.admin.actions import Decision, ReasonedAction, ReasonedActions
from gateway.admin.approval_pages import ApprovalRequestAdmin
from gateway.admin.base import ReadOnlyAdmin
from gateway.admin.mixins import staff_of
from gateway.staff import approval_kinds, approvals, audit, pauses
from gateway.staff.approval_kinds import CREDITS
from gateway.staff.models import ApprovalRequest, Pause, StaffAction

navigation.register(
    "System",
    {
        "gateway_admin.ApprovalRequest": "rule",
        "gateway_admin.StaffAction": "history",
        "gateway_admin.Pause": "pause_circle",
        "auth.Group": "shield_person",
        "axes.AccessAttempt": "gpp_bad",
        "axes.AccessFailureLog": "report",
        "axes.AccessLog": "list_alt",
    },
)

_MOST_SHOWN = 99


def _waits_for(request: HttpRequest) -> int:
    """Count the requests that the user may decide, up to a maximum. Users who decide none cost no query."""
    if not request.user.has_perm("gateway_admin.decide_approvalrequest"):
        return 0
    mine = ApprovalRequest.objects.waiting().filter(approvals.waits_for(staff_of(request)))
    return mine.order_by()[:_MOST_SHOWN].count()


navigation.show_badge("gateway_admin.ApprovalRequest", _waits_for)

# The code below replaces the pages of these apps, so they must be registered first.
import_module("django.contrib.auth.admin")
for _model in (Group, AccessAttempt, AccessFailureLog, AccessLog):
    admin.site.unregister(_model)


admin.site.register(ApprovalRequest, ApprovalRequestAdmin)


@admin.register(Group)
class RoleAdmin(ReadOnlyAdmin):
    """Roles, read-only: the code defines their permissions; a user's roles are set on the user's page."""

    list_display = search_fields = ("name",)
    ordering = ("name",)
    filter_horizontal = ("permissions",)


class _LoginAttempts(ReadOnlyAdmin):
    """Login attempts, without filters that would read a whole column."""

    date_hierarchy = None
    list_filter: ClassVar[Any] = (("attempt_time", admin.DateFieldListFilter),)
    search_fields = ("username__exact", "ip_address__exact")
    search_help_text = "A complete user name or address."
    ordering = ("-pk",)


@admin.register(AccessAttempt)
class LockoutAdmin(_LoginAttempts, AccessAttemptAdmin):  # type: ignore[misc]
    """User names and addresses with failed logins. A lockout ends by itself."""

    actions = ()


@admin.register(AccessFailureLog)
class FailedLoginAdmin(_LoginAttempts, AccessFailureLogAdmin):  # type: ignore[misc]
    """Failed logins."""


@admin.register(AccessLog)
class LoginAdmin(_LoginAttempts, AccessLogAdmin):  # type: ignore[misc]
    """Logins and logouts."""


# Texts for the statuses that a request has when `approvals` writes an entry about it.
_STAGES = {
    ApprovalRequest.Status.WAITING: "Asked for",
    ApprovalRequest.Status.DONE: "Carried out",
    ApprovalRequest.Status.REJECTED: "Rejected",
}


def _approval_of(entry: LogEntry) -> ApprovalRequest | None:
    """Return the request of which the entry is a stage; None without one."""
    stage = audit.details_of(entry).get("approval")
    rows = ApprovalRequest.objects.select_related("requested_by", "decided_by")
    return rows.filter(pk=stage["request"]).first() if stage else None


def _wrapped(*lines: Any) -> SafeString:
    """Return lines for a cell that wraps."""
    return format_html_join("", '<div class="wrapped">{}</div>', ((line,) for line in lines if line))


@admin.register(StaffAction)
class AuditLogAdmin(ReadOnlyAdmin):
    """The audit log: actor, action, time, reason, old and new values, request id."""

    list_display = ("action_time", "user", "what", "row", "reason", "changes")
    list_filter = (
        ("action_time", admin.DateFieldListFilter),
        "action_flag",
        ("user", admin.RelatedOnlyFieldListFilter),
        ("content_type", admin.RelatedOnlyFieldListFilter),
    )
    list_select_related = ("user", "content_type")
    list_display_links = ("action_time",)
    search_fields = ("object_id__exact",)
    search_help_text = "A complete request id or row id, or the name of a member of staff."
    ordering = ("-pk",)
    fields = readonly_fields = (
        "action_time", "user", "what", "row", "reason", "changes", "requested", "decided", "posted", "request_id",
    )  # fmt: skip

    def find_rows(self, rows: QuerySet[StaffAction], term: str) -> QuerySet[StaffAction]:
        # Separate queries that each use an index; an OR would read the whole log.
        for some in (rows.filter(pk__in=StaffAction.of_request(term)), rows.filter(object_id=term)):
            if some.exists():
                return some
        return rows.filter(user__username=term)

    @admin.display(description="what")
    def what(self, entry: LogEntry) -> SafeString:
        """The action, with the stage of its approval request, if it has one."""
        stage = audit.details_of(entry).get("approval")
        name = stage["kind"] if stage else audit.sentence_of(entry)
        titles = {kind.name: kind.title for kind in approval_kinds.kinds()}
        return _wrapped(
            titles.get(name, name[:1].upper() + name[1:].replace("_", " ")),
            format_html("<strong>{}</strong>", _STAGES[stage["status"]]) if stage else "",
        )

    @admin.display(description="about")
    def row(self, entry: LogEntry) -> str | SafeString:
        kind = entry.content_type
        if kind is None or not entry.object_id:
            return _wrapped(entry.object_repr)
        try:
            url = reverse(f"admin:{kind.app_label}_{kind.model}_change", args=[entry.object_id])
        except NoReverseMatch:
            return _wrapped(entry.object_repr)
        return _wrapped(format_html('<a href="{}">{}</a>', url, entry.object_repr))

    @admin.display(description="why")
    def reason(self, entry: LogEntry) -> SafeString:
        return _wrapped(audit.details_of(entry).get("reason", ""))

    @admin.display(description="from → to")
    def changes(self, entry: LogEntry) -> SafeString:
        details = audit.details_of(entry)
        model = entry.content_type.model_class() if entry.content_type else None
        lines = columns.lines(model, details.get("changes", {}))
        if "approval" not in details:
            return _wrapped(*lines)
        request = details["approval"]["request"]
        page = reverse("admin:gateway_admin_approvalrequest_change", args=[request])
        return _wrapped(*lines, format_html('<a href="{}">request {}</a>', page, request))

    @admin.display(description="requested by")
    def requested(self, entry: LogEntry) -> str:
        approval = _approval_of(entry)
        return (
            f"{approval.requested_by} ({', '.join(approval.requested_roles)}): {approval.reason}"
            if approval
            else ""
        )

    @admin.display(description="decided by")
    def decided(self, entry: LogEntry) -> str:
        approval = _approval_of(entry)
        if approval is None or approval.decided_at is None:
            return "undecided" if approval else ""
        who = approval.decided_by or "no second person needed"
        return f"{approval.get_status_display()}: {who}. {approval.decision_reason}".strip()

    @admin.display(description="posted")
    def posted(self, entry: LogEntry) -> str | SafeString:
        """Link to the ledger entries that the request posted; they carry the request's id."""
        approval = _approval_of(entry)
        if (
            approval is None
            or approval.pool != CREDITS.name
            or approval.status != ApprovalRequest.Status.DONE
        ):
            return ""
        url = f"{reverse('admin:credits_creditentry_changelist')}?q=approval:{approval.pk}"
        return format_html('<a href="{}">Entries of request {}</a>', url, approval.pk)

    @admin.display(description="request")
    def request_id(self, entry: LogEntry) -> str:
        return str(audit.details_of(entry).get("requestId", ""))


columns.colour("good", "resumed")
columns.colour("waiting", "paused")


@admin.register(Pause)
class PauseAdmin(ReasonedActions, ReadOnlyAdmin):
    """The paused parts of the service, and below them all decisions to pause or resume one."""

    list_display = fields = readonly_fields = ("created_at", "part", "decision", "actor", "reason")
    list_before_template = "admin/pauses.html"
    list_select_related = ("actor",)
    ordering = ("-id",)
    # `offer_pause` adds the actions of each app.
    staff_actions: ClassVar[list[ReasonedAction]] = []

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        return {**super().list_context(request), "present": pauses.present()}

    @admin.display(description="part", ordering="name")
    def part(self, decision: Pause) -> str:
        return columns.word_of(decision.name, pauses.pausable.get(decision.name, ""))

    @admin.display(description="decision", ordering="is_paused")
    def decision(self, decision: Pause) -> SafeString:
        return columns.badge("paused" if decision.is_paused else "resumed")


def offer_pause(name: str, *, title: str, effect: str) -> None:
    """Add the actions that pause and resume the part to the page of pauses; `effect` describes a pause."""

    def action(verb: str, effect: str, *, to_paused: bool) -> ReasonedAction:
        def run(_: Any, decision: Decision) -> str:
            pauses.switch(name, is_paused=to_paused, actor=decision.actor, reason=decision.reason)
            return f"{verb}d."

        return ReasonedAction(
            name=f"{verb.lower()}_{name}",
            label=f"{verb} {title}",
            permission="gateway_admin.add_pause",
            subject=title.capitalize(),
            effect=lambda _: effect,
            run=run,
            applies_to=lambda _: pauses.is_paused(name) is not to_paused,
        )

    pauses.pausable[name] = title
    PauseAdmin.staff_actions += [
        action("Pause", effect, to_paused=True),
        action("Resume", "New requests are accepted again.", to_paused=False),
    ]
