"""
The audit log: which member of staff did what, when, why and in which request, in Django's own log of the admin.

Each entry's `change_message` is the JSON list that Django renders, with one more
object that holds the action, its reason, what changed from what to what, and the
request id. A trigger keeps the rows (see `gateway.admin.models`).
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import IntegrityError, models, transaction
from django.db.models import F, Func, Value
from django.forms import BaseForm, BaseModelForm
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from gateway.common.db import violated_constraint
from gateway.common.logging import request_id

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin

    _Base = ModelAdmin[Any]
else:
    _Base = object


Changes = Mapping[str, tuple[str, str]]
# Of a secret field the log says that it changed, and neither value. The seed of one-time passwords
# is a field named `key`; a key manager's address is not secret.
_SECRET = re.compile(r"(^|_)(secret|token|password)s?\d*(_|$)|private_key|^key$")
_HIDDEN = "•••"
# A unique index of the log, made by a migration of this package.
_ONE_DECISION = "gateway_admin_staffaction_decision"
_DECISION = '"decision": "([^"]+)"'


def record(
    *,
    actor: Any,
    row: models.Model,
    action: str,
    reason: str = "",
    changes: Changes | None = None,
    decision: str = "",
    name: str = "",
) -> LogEntry | None:
    """
    Write down that `actor` did `action` to `row`; runs inside the caller's transaction.

    `name` is how the entry names the row, which need not be stored: an action may be about all rows of its
    kind. Of entries with the same `decision` only the first is written; for the others None is returned.
    """
    message = [details(action=action, reason=reason, changes=changes or {}, decision=decision)]
    try:
        with transaction.atomic():
            return LogEntry.objects.create(
                user_id=actor.pk,
                content_type=ContentType.objects.get_for_model(row, for_concrete_model=False),
                object_id="" if row.pk is None else str(row.pk),
                object_repr=(name or str(row))[:200],
                action_flag=CHANGE,
                change_message=json.dumps(message),
            )
    except IntegrityError as error:
        if violated_constraint(error) == _ONE_DECISION:
            return None
        raise


def is_recorded(decision: str) -> bool:
    # Exactly the condition of the index.
    decided = LogEntry.objects.filter(change_message__contains='"decision": "')
    return decided.alias(decision=extracted(_DECISION)).filter(decision=decision).exists()


def extracted(pattern: str) -> Func:
    """Return what the pattern captures of an entry's message, by exactly the expression of the log's indexes."""
    return Func(
        F("change_message"),
        Value(pattern),
        function="SUBSTRING",
        arg_joiner=" FROM ",
        output_field=models.TextField(),
    )


def details(
    *, action: str, reason: str = "", changes: Changes | None = None, decision: str = ""
) -> dict[str, Any]:
    """Return the object that we add to an entry's message."""
    values = {
        "action": action,
        "reason": reason,
        "changes": {name: list(pair) for name, pair in (changes or {}).items()},
        "requestId": request_id() or "",
    }
    # A unique index of the log extracts the decision from the text.
    return {**values, "decision": decision} if decision else values


def details_of(entry: LogEntry) -> dict[str, Any]:
    """Return action, reason, changes and request id; empty for entries that carry none."""
    if not entry.change_message.startswith("["):
        return {}
    return next((part for part in json.loads(entry.change_message) if "requestId" in part), {})


def sentence_of(entry: LogEntry) -> str:
    """Return what was done, in Django's words if there are any, else the action's name."""
    values = details_of(entry)
    if values and len(json.loads(entry.change_message)) == 1:
        return str(values["action"])
    return str(entry.get_change_message() or entry.get_action_flag_display())


def changes_of(form: BaseForm, *, is_new: bool = False) -> Changes:
    """Return what a bound, valid form changes: field, from, to. A new row's old values are empty."""
    return {name: _pair(form, name, is_new) for name in form.changed_data}


def removals_of(form: BaseModelForm[Any]) -> Changes:
    """Return what a form showed of a row that it deletes: field, from, to nothing."""
    before = {name: _pair(form, name, is_new=False)[0] for name in form.fields if name in form.initial}
    return {name: (text, "") for name, text in before.items() if text}


def shown(name: str, value: Any) -> str:
    """Return the value of the field as text, and a secret as dots."""
    return _HIDDEN if _SECRET.search(name) else str(value)


def _pair(form: BaseForm, name: str, is_new: bool) -> tuple[str, str]:
    field = form.fields[name]
    if _SECRET.search(name) or isinstance(field.widget, forms.PasswordInput):
        return _HIDDEN, _HIDDEN
    before = None if is_new else form.get_initial_for_field(field, name)
    return _text(field, before), _text(field, form.cleaned_data.get(name))


def _text(field: forms.Field, value: Any) -> str:
    """Return the value as staff read it: a row by its name, several by their names."""
    if value is None or value == "":
        return ""
    if isinstance(value, models.QuerySet | list | tuple | set):
        return ", ".join(sorted(_text(field, part) for part in value))
    if isinstance(field, forms.ModelChoiceField) and not isinstance(value, models.Model):
        return str(_row(field, value) or value)
    return str(value)


def _row(field: forms.ModelChoiceField[Any], value: Any) -> models.Model | None:
    """Return the row that a form's initial value names, even if it can no longer be chosen."""
    model = field.queryset.model if field.queryset is not None else None
    return model._base_manager.filter(**{field.to_field_name or "pk": value}).first() if model else None


class AdminMixin(_Base):
    """A part of an admin class, which may call the class that it becomes a part of."""

    def page_url(self, page: str, *args: Any) -> str:
        """Return the address of a page of this model: `changelist`, `change`, or one that the class adds."""
        name = f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_{page}"
        return reverse(name, args=args)

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        """Return what the template of the list is given besides Django's own context."""
        return {}

    def form_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return the same for the page of a row, which is None for a new one."""
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
    """Logs every addition, change and deletion with what it changed; the history page shows it."""

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
    """Return how inline rows change, come and go, each field under its row's name."""
    deleted = {
        # A deleted row has no key any more; the form still has the one it showed.
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
    """Return the signed-in member of staff; the admin lets nobody else in."""
    return request.user
