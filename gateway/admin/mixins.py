"""Mix-ins of admin classes: URLs and template contexts of their pages, and the audit log of changes."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.contrib.admin.models import DELETION, LogEntry
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from gateway.staff.audit import changes_of, details, details_of, removals_of, sentence_of

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin

    _Base = ModelAdmin[Any]
else:
    _Base = object


class AdminMixin(_Base):
    """Base of the mix-ins, typed as the admin class that they extend."""

    def page_url(self, page: str, *args: Any) -> str:
        """Return the URL of a page of this model: `changelist`, `change`, or one that the class adds."""
        name = f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_{page}"
        return reverse(name, args=args)

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        """Return additional context for the list's template."""
        return {}

    def form_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return additional context for the page of a row; `row` is None for a new row."""
        return {}

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return super().changelist_view(request, {**self.list_context(request), **(extra_context or {})})

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        context |= self.form_context(request, kwargs.get("obj"))
        return super().render_change_form(request, context, *args, **kwargs)


_HEADS = ("When", "Who", "What", "Why", "From → to", "Request")


class Audited(AdminMixin):
    """Logs every addition, change and deletion with its values, for the history page."""

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> list[dict[str, Any]]:
        message: list[dict[str, Any]] = super().construct_change_message(request, form, formsets, add)
        changes = dict(changes_of(form, is_new=add))
        for formset in formsets or ():
            changes |= _changes_of_rows(formset)
        return [*message, details(action="add" if add else "change", changes=changes)]

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> LogEntry:
        return super().log_addition(request, obj, _with_request(message))

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> LogEntry:
        return super().log_change(request, obj, _with_request(message))

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        message = [details(action="delete")]
        return LogEntry.objects.log_actions(staff_of(request).pk, queryset, DELETION, message)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        page = super().history_view(request, object_id, extra_context)
        if isinstance(page, TemplateResponse) and page.context_data is not None:
            entries = page.context_data["action_list"]
            page.context_data["heads"] = _HEADS
            page.context_data["history"] = [
                (entry, sentence_of(entry), details_of(entry)) for entry in entries
            ]
        return page


def _with_request(message: Any) -> list[dict[str, Any]]:
    return message if isinstance(message, list) else [details(action=str(message))]


def _changes_of_rows(formset: Any) -> dict[str, tuple[str, str]]:
    """Return the changes of inline rows; each field's label includes the row's name."""
    deleted = {
        # A deleted instance has no key any more, but its form still has it.
        f"{form.instance._meta.verbose_name} {form[form.instance._meta.pk.name].initial}: {name}": pair
        for form in formset.deleted_forms
        if form in formset.initial_forms
        for name, pair in removals_of(form).items()
    }
    new = {id(row) for row in formset.new_objects}
    saved: Iterable[Any] = [
        form
        for form in formset.forms
        if form.has_changed() and hasattr(form, "cleaned_data") and form not in formset.deleted_forms
    ]
    return deleted | {
        f"{form.instance._meta.verbose_name} {form.instance.pk}: {name}": pair
        for form in saved
        for name, pair in changes_of(form, is_new=id(form.instance) in new).items()
    }


def staff_of(request: HttpRequest) -> Any:
    """Return the signed-in member of staff; the admin admits no other users."""
    return request.user
