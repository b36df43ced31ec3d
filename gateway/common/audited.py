"""Log what staff do on Django's own pages: each change with its old and new value and the request."""

from collections.abc import Iterable
from typing import Any

from django.contrib.admin.models import DELETION, LogEntry
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from gateway.common import audit
from gateway.common.admin_mixin import AdminMixin
from gateway.common.owner import staff_of

_HEADS = ("When", "Who", "What", "Why", "From → to", "Request")


class Audited(AdminMixin):
    """Logs every addition, change and deletion with what it changed; the history page shows it."""

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> list[dict[str, Any]]:
        message: list[dict[str, Any]] = super().construct_change_message(request, form, formsets, add)
        changes = dict(audit.changes_of(form, is_new=add))
        for formset in formsets or ():
            changes |= _changes_of_rows(formset)
        return [*message, audit.details(action="add" if add else "change", changes=changes)]

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> LogEntry:
        return super().log_addition(request, obj, _with_request(message))

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> LogEntry:
        return super().log_change(request, obj, _with_request(message))

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        told = [audit.details(action="delete")]
        return LogEntry.objects.log_actions(staff_of(request).pk, queryset, DELETION, told)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        page = super().history_view(request, object_id, extra_context)
        if isinstance(page, TemplateResponse) and page.context_data is not None:
            entries = page.context_data["action_list"]
            page.context_data["heads"] = _HEADS
            page.context_data["history"] = [
                (entry, audit.sentence_of(entry), audit.details_of(entry)) for entry in entries
            ]
        return page


def _with_request(message: Any) -> list[dict[str, Any]]:
    """Add the request id to a message in plain words."""
    return message if isinstance(message, list) else [audit.details(action=str(message))]


def _changes_of_rows(formset: Any) -> dict[str, tuple[str, str]]:
    """Return how inline rows change, come and go, each field under its row's name."""
    gone = {
        # A deleted row has no key any more; the form still has the one it showed.
        f"{form.instance._meta.verbose_name} {form[form.instance._meta.pk.name].initial}: {name}": pair
        for form in formset.deleted_forms
        if form in formset.initial_forms
        for name, pair in audit.removals_of(form).items()
    }
    fresh = {id(row) for row in formset.new_objects}
    touched: Iterable[Any] = [
        form
        for form in formset.forms
        if form.has_changed() and hasattr(form, "cleaned_data") and form not in formset.deleted_forms
    ]
    return gone | {
        f"{form.instance._meta.verbose_name} {form.instance.pk}: {name}": pair
        for form in touched
        for name, pair in audit.changes_of(form, is_new=id(form.instance) in fresh).items()
    }
