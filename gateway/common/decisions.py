"""
What staff decide with a reason, and how it is carried out: once, and with a log that says what happened.

An action on our own rows and its entry in the audit log are one transaction. One that
asks Stripe, the node or the broker cannot be: it is written down as begun, and again with
its outcome. An entry without an outcome says that nobody knows, and the same page may be
sent once more, since such services may be repeated.
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
    """Why; and a token that makes a page sent twice one decision."""

    reason = forms.CharField(
        max_length=500,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text="Stays on record with your name.",
    )
    token = forms.UUIDField(widget=forms.HiddenInput)


@dataclass(frozen=True, slots=True)
class Decision:
    """What a member of staff has confirmed: who, what, why, and what else the form asked for."""

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

    `permission` is a whole permission such as `relay.pause_relayer`; `effect` says in words
    what will become of a row; `run` calls the service and may return what to tell. It runs
    inside a transaction, or, where it `reaches_out` over a network, outside of any; it may
    then be repeated. `initial` says what the form carries about the rows, read before their
    effects are shown; `changes` what becomes of a row, from what to what, for the log of what
    is done. An action with a `subject` is about something as a whole, which the
    subject names: it is offered on the list, chooses no rows, and its functions get a row
    that is not stored.
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
        """Return what to call the row."""
        return self.subject or str(row)


class SentBefore(Exception):
    """The page was sent before; the argument tells what is known of it."""


def carry_out(action: ReasonedAction, row: Any, decision: Decision) -> str:
    """
    Do it to the row, and return what to tell.

    Raises:
        SentBefore: the decision was carried out before, or is being carried out now.
        DomainError: the service refuses. That is on record; nothing else has changed, or nothing is known to.
    """
    try:
        return (_reaching_out if action.reaches_out else _in_one_transaction)(action, row, decision)
    except DomainError as refusal:
        _note(action, row, decision, "refused", outcome=refusal.code)
        raise


@transaction.atomic
def _in_one_transaction(action: ReasonedAction, row: Any, decision: Decision) -> str:
    # The entry comes first: of a page that is sent twice at once, the second waits here for the first.
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
    """Write it down; what is done is written `once`, and None is returned where it was before."""
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
