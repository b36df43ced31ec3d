"""The audit log: what staff did, by whom, to what and when."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from gateway.common import audit
from gateway.common.admin import ReadOnlyAdmin
from users.models import StaffAction


@admin.register(StaffAction)
class AuditLogAdmin(ReadOnlyAdmin):
    """Who did what, when, why, from what to what, and in which request."""

    list_display = ("action_time", "user", "what", "row", "reason", "changes", "request_id")
    list_filter = (
        ("action_time", admin.DateFieldListFilter),
        "action_flag",
        ("user", admin.RelatedOnlyFieldListFilter),
        ("content_type", admin.RelatedOnlyFieldListFilter),
    )
    list_select_related = ("user", "content_type")
    list_display_links = ("action_time",)
    search_fields = ("object_id__exact",)
    search_help_text = "A whole request id, the whole id of a row, or the name of a member of staff."
    ordering = ("-pk",)
    fields = readonly_fields = ("action_time", "user", "what", "row", "reason", "changes", "request_id")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[StaffAction], search_term: str
    ) -> tuple[QuerySet[StaffAction], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        # One index each; an OR over them would read the whole log.
        for found in (
            queryset.filter(pk__in=StaffAction.of_request(term)),
            queryset.filter(object_id=term),
        ):
            if found.exists():
                return found, False
        return queryset.filter(user__username=term), False

    @admin.display(description="what")
    def what(self, entry: LogEntry) -> str:
        return audit.sentence_of(entry)

    @admin.display(description="row")
    def row(self, entry: LogEntry) -> str | SafeString:
        kind = entry.content_type
        if kind is None or not entry.object_id:
            return entry.object_repr
        try:
            url = reverse(f"admin:{kind.app_label}_{kind.model}_change", args=[entry.object_id])
        except NoReverseMatch:
            return entry.object_repr
        return format_html('<a href="{}">{}</a>', url, entry.object_repr)

    @admin.display(description="why")
    def reason(self, entry: LogEntry) -> str:
        return str(audit.details_of(entry).get("reason", ""))

    @admin.display(description="from → to")
    def changes(self, entry: LogEntry) -> SafeString:
        pairs: dict[str, list[Any]] = audit.details_of(entry).get("changes", {})
        lines = ((name, *pair) for name, pair in pairs.items())
        return format_html_join("", "<div>{}: {} → {}</div>", lines)

    @admin.display(description="request")
    def request_id(self, entry: LogEntry) -> str:
        return str(audit.details_of(entry).get("requestId", ""))
