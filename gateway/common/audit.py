"""
Who of the staff did what, when, why and in which request: Django's own log of the admin.

Each entry's `change_message` is the JSON list that Django renders, with one more
object that holds the action, its reason, what changed from what to what, and the
request id. A trigger keeps the rows (see `users.models.audit`).
"""

from collections.abc import Mapping
from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.db import models
from django.forms import BaseForm

from gateway.common.http import request_id
from gateway.common.owner import ProfileOwner

Changes = Mapping[str, tuple[str, str]]
# A field whose name tells of a secret is said to have changed, never from what to what.
_SECRETIVE = ("secret", "token", "password", "key")
_HIDDEN = "•••"


def record(
    *, actor: ProfileOwner, row: models.Model, action: str, reason: str = "", changes: Changes | None = None
) -> LogEntry:
    """Write down that `actor` did `action` to `row`; runs inside the caller's transaction."""
    [entry] = LogEntry.objects.log_actions(
        actor.pk, [row], CHANGE, [details(action=action, reason=reason, changes=changes or {})]
    )
    return entry


def details(*, action: str, reason: str = "", changes: Changes | None = None) -> dict[str, Any]:
    """Return the object that an entry's message carries besides Django's own."""
    return {
        "action": action,
        "reason": reason,
        "changes": {name: list(pair) for name, pair in (changes or {}).items()},
        "requestId": request_id() or "",
    }


def changes_of(form: BaseForm) -> Changes:
    """Return what a bound, valid form changes: field, from, to."""
    return {
        name: (_HIDDEN, _HIDDEN)
        if any(word in name for word in _SECRETIVE)
        else (_text(form.get_initial_for_field(form.fields[name], name)), _text(form.cleaned_data.get(name)))
        for name in form.changed_data
    }


def _text(value: object) -> str:
    return "" if value is None else str(value)
