"""
The audit log: actor, action, reason, time and request id of each staff action, in the admin's log table of Django.

Each entry's `change_message` is the JSON list that Django renders, with one more object: the action, its reason, the
old and new values, and the request id. A trigger makes the rows append-only (see `gateway.staff.models`).
"""

import json
import re
from collections.abc import Mapping
from typing import Any, TypedDict

from django import forms
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import IntegrityError, models, transaction
from django.db.models import F, Func, Value
from django.forms import BaseForm, BaseModelForm

from gateway.common.db import violated_constraint
from gateway.common.logging import request_id

Changes = Mapping[str, tuple[str, str]]


class Approval(TypedDict):
    """A stage of an approval request: its id, the name of its kind, and the status that it reached."""

    request: int
    kind: str
    status: str


# For a secret field, the log records only that it changed. The seed of one-time passwords is a field
# named `key`; a key manager's address is not secret.
_SECRET = re.compile(r"(^|_)(secret|token|password)s?\d*(_|$)|private_key|^key$")
_HIDDEN = "•••"
# The name of a unique index that a migration of this package creates.
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
    approval: Approval | None = None,
    name: str = "",
) -> LogEntry | None:
    """
    Log that `actor` did `action` to `row`, inside the caller's transaction.

    `row` need not be stored, because an action may concern all rows of a model; the entry then shows `name`.
    Only the first entry of a `decision` is written; later calls with the same decision return None. With `approval`
    the entry is a stage of a request.
    """
    message = [details(action=action, reason=reason, changes=changes, decision=decision, approval=approval)]
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
    # Matches the condition of the index.
    decided = LogEntry.objects.filter(change_message__contains='"decision": "')
    return decided.alias(decision=extracted(_DECISION)).filter(decision=decision).exists()


def extracted(pattern: str) -> Func:
    """Return the SQL expression for the text that the pattern captures; the log's indexes have the same expression."""
    return Func(
        F("change_message"),
        Value(pattern),
        function="SUBSTRING",
        arg_joiner=" FROM ",
        output_field=models.TextField(),
    )


def details(
    *,
    action: str,
    reason: str = "",
    changes: Changes | None = None,
    decision: str = "",
    approval: Approval | None = None,
) -> dict[str, Any]:
    """Return the object that this service adds to an entry's message."""
    values: dict[str, Any] = {
        "action": action,
        "reason": reason,
        "changes": {name: list(pair) for name, pair in (changes or {}).items()},
        "requestId": request_id() or "",
    }
    if approval:
        values["approval"] = approval
    # A unique index of the log extracts the decision from the text.
    return {**values, "decision": decision} if decision else values


def details_of(entry: LogEntry) -> dict[str, Any]:
    """Return action, reason, changes, request id, and approval if any; empty for entries that carry none."""
    if not entry.change_message.startswith("["):
        return {}
    return next((part for part in json.loads(entry.change_message) if "requestId" in part), {})


def sentence_of(entry: LogEntry) -> str:
    """Return Django's description of the change, or the action's name."""
    values = details_of(entry)
    if values and len(json.loads(entry.change_message)) == 1:
        return str(values["action"])
    return str(entry.get_change_message() or entry.get_action_flag_display())


def changes_of(form: BaseForm, *, is_new: bool = False) -> Changes:
    """Return the changes of a valid form: field, old value, new value. Old values of a new row are empty."""
    return {name: _pair(form, name, is_new) for name in form.changed_data}


def removals_of(form: BaseModelForm[Any]) -> Changes:
    """Return the values of a row that a form deletes: field, old value, and an empty new value."""
    before = {name: _pair(form, name, is_new=False)[0] for name in form.fields if name in form.initial}
    return {name: (text, "") for name, text in before.items() if text}


def shown(name: str, value: Any) -> str:
    """Return the field's value as text; secrets are replaced by dots."""
    return _HIDDEN if _SECRET.search(name) else str(value)


def _pair(form: BaseForm, name: str, is_new: bool) -> tuple[str, str]:
    field = form.fields[name]
    if _SECRET.search(name) or isinstance(field.widget, forms.PasswordInput):
        return _HIDDEN, _HIDDEN
    before = None if is_new else form.get_initial_for_field(field, name)
    return _text(field, before), _text(field, form.cleaned_data.get(name))


def _text(field: forms.Field, value: Any) -> str:
    """Return the value as text; rows are shown by their names."""
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
