"""
Decisions of staff, each with a reason: carried out once, and logged with their outcome.

An action on our own rows and its entry in the audit log are one transaction. An action that
asks Stripe, the node or the broker cannot be one: it has one entry when it begins and another
with its outcome. Without the second entry the outcome is unknown, and the same page may be
sent again, because such services may be repeated.
"""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib.admin.models import LogEntry
from django.db import transaction
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminTextareaWidget

from gateway.common import audit
from gateway.common.errors import DomainError
from gateway.common.locks import try_advisory_lock
from gateway.common.owner import ProfileOwner


class ReasonForm(forms.Form):
    """The reason, and a token that makes a page sent twice one decision."""

    reason = forms.CharField(
        max_length=500,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text="Stays on record with your name.",
    )
    token = forms.UUIDField(widget=forms.HiddenInput)


@dataclass(frozen=True, slots=True)
class Decision:
    """A confirmed decision: who, what, why, and what else the form asked for."""

    actor: ProfileOwner
    action: str
    reason: str
    answers: dict[str, Any]
    token: uuid.UUID

    def key(self, row: Any) -> str:
        """Return a key that names this decision about this row, the same for a page sent twice."""
        return f"staff:{self.token}:{row._meta.label_lower}:{self.action}:{row.pk or ''}"


@dataclass(frozen=True, slots=True)
class ReasonedAction:
    """
    An action that is confirmed with a reason.

    `permission` is a full permission such as `relay.pause_relayer`; `effect` describes what
    will happen to a row; `run` calls the service and may return a message for staff. `run`
    is inside a transaction, unless it `reaches_out` over a network; then it may be repeated.
    `initial` returns the form's initial values for the rows, read before their effects are
    shown; `changes` returns what the action changes in a row, from and to, for the log. An
    action with a `subject` is about the whole thing that the subject names: it is offered on
    the list, chooses no rows, and its functions get a row that is not stored.
    """

    name: str
    label: str
    permission: str
    effect: Callable[[Any], str]
    run: Callable[[Any, Decision], str | None]
    form: type[ReasonForm] = ReasonForm
    initial: Callable[[Sequence[Any]], dict[str, Any]] = lambda rows: {}
    changes: Callable[[Any], audit.Changes] = lambda row: {}
    applies_to: Callable[[Any], bool] = lambda row: True
    subject: str = ""
    reaches_out: bool = False

    def is_allowed(self, request: HttpRequest) -> bool:
        """Return whether the signed-in member of staff may do it."""
        return request.user.has_perm(self.permission)

    def name_of(self, row: Any) -> str:
        """Return the row's name."""
        return self.subject or str(row)


class SentBefore(Exception):
    """The page was sent before; the argument is what is known about it."""


def carry_out(action: ReasonedAction, row: Any, decision: Decision) -> str:
    """
    Do it to the row, and return the message for staff.

    Raises:
        SentBefore: the decision was carried out before, or is being carried out now.
        DomainError: the service refused, which is logged. As far as we know, nothing else has changed.
    """
    try:
        return (_reaching_out if action.reaches_out else _in_one_transaction)(action, row, decision)
    except DomainError as refusal:
        _note(action, row, decision, "refused", outcome=refusal.code)
        raise


@transaction.atomic
def _in_one_transaction(action: ReasonedAction, row: Any, decision: Decision) -> str:
    # The entry comes first: if a page is sent twice at once, the second request waits here for the first.
    if _note(action, row, decision, once=True) is None:
        raise SentBefore("Its history says what became of it.")
    return action.run(row, decision) or action.label


def _reaching_out(action: ReasonedAction, row: Any, decision: Decision) -> str:
    with try_advisory_lock(decision.key(row)) as acquired:
        if not acquired:
            raise SentBefore("It is under way.")
        if audit.is_recorded(decision.key(row)):
            raise SentBefore("Its history says what became of it.")
        _note(action, row, decision, "begun")
        try:
            answer = action.run(row, decision) or action.label
        except DomainError:
            raise
        except Exception as fault:
            _note(action, row, decision, "failed", outcome=type(fault).__name__)
            raise
        _note(action, row, decision, once=True, outcome=answer)
        return answer


def _note(
    action: ReasonedAction,
    row: Any,
    decision: Decision,
    stage: str = "",
    *,
    once: bool = False,
    outcome: str = "",
) -> LogEntry | None:
    """Write an entry; the final one (`once`) has the changes, and is None if the decision already has one."""
    told = {**decision.answers, **({"outcome": outcome} if outcome else {})}
    return audit.record(
        actor=decision.actor,
        row=row,
        action=f"{action.name} {stage}".strip(),
        reason=decision.reason,
        changes={name: ("", str(answer)) for name, answer in told.items()}
        | (dict(action.changes(row)) if once else {}),
        decision=decision.key(row) if once else "",
        name=action.subject,
    )
