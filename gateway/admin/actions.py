"""
Actions of staff that need a reason: confirmed first, carried out once, and logged with their outcome.

An admin class lists its actions in `staff_actions`. The list and the row's page offer them; both lead to a confirmation
page, which carries out the action row by row. The page works without JavaScript.

A database action and its audit entry commit in one transaction. An action that calls Stripe, a node or the broker
writes one entry at its start and one with its outcome. If the second entry is missing, the outcome is unknown; staff
can submit the page again, because such actions are idempotent.

An action of a `kind` requests approval; `gateway.staff.approvals` writes one entry for the request and one when it is
carried out.
"""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.contrib.admin.models import LogEntry
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminTextareaWidget

from gateway.admin.mixins import AdminMixin, staff_of
from gateway.common.errors import DomainError, complaint_about
from gateway.common.leases import try_lease
from gateway.staff import approval_kinds, approvals, audit
from gateway.staff.models import ApprovalRequest


def require_substance(reason: str) -> None:
    """Refuse a meaningless reason, such as dots; a validator."""
    if complaint := complaint_about(reason):
        raise ValidationError(complaint)


class ReasonForm(forms.Form):
    """The reason, and a token that identifies the decision if the page is submitted twice."""

    reason = forms.CharField(
        max_length=500,
        validators=[require_substance],
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text="Stored in the log with your name.",
    )
    token = forms.UUIDField(widget=forms.HiddenInput)


@dataclass(frozen=True, slots=True)
class Decision:
    """A confirmed decision: actor, action, reason, and the form's other values."""

    # A user. The type is Any, because this package must not import the project's user model.
    actor: Any
    action: str
    reason: str
    inputs: dict[str, Any]
    token: uuid.UUID

    def key(self, row: Any) -> str:
        """Return the idempotency key of this decision for the row; it stays the same if the page is submitted twice."""
        return f"staff:{self.token}:{row._meta.label_lower}:{self.action}:{row.pk or ''}"


@dataclass(frozen=True, slots=True)
class ReasonedAction:
    """
    A staff action with a confirmation page and a reason.

    `permission` is a full permission such as `relay.pause_relayer`. `effect` describes the effect on a row. `run` calls
    the service and may return a message. It runs in a transaction, unless the action `reaches_out` over a network; it
    must then be idempotent. `initial` returns the form's initial values, read before the effects are shown. `changes`
    returns the old and new values for the log. An action with a `subject` applies to no row: the list offers it, and
    its functions get an unsaved row. An action of a `kind` calls a service that requests approval with
    `decision.key(row)`; `person` is the user whose credits it moves. `refusal` returns why this member of staff cannot
    use the action.
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
    kind: approval_kinds.Kind | None = None
    person: Callable[[Any], Any] = lambda row: None
    refusal: Callable[[Any, Any], str] = lambda row, actor: ""

    def is_allowed(self, request: HttpRequest) -> bool:
        return request.user.has_perm(self.permission)

    def name_of(self, row: Any) -> str:
        return self.subject or str(row)

    def effect_for(self, row: Any, actor: Any) -> Any:
        """Return the effect in words, and whether it happens at once or after approval."""
        effect = self.effect(row)
        if self.kind is None:
            return effect
        notice = approvals.notice(kind=self.kind, actor=actor, person=self.person(row))
        return format_html("{}<br>{}", effect, notice)

    def why_not(self, row: Any, actor: Any) -> str:
        """Return why the action skips the row for this member of staff; empty if it applies."""
        return self.refusal(row, actor) if self.applies_to(row) else "It does not apply."


class SentBefore(Exception):
    """The page was submitted before; the argument is a sentence about the outcome."""


def carry_out(action: ReasonedAction, row: Any, decision: Decision) -> str:
    """
    Apply the action to the row, and return the message for staff.

    Raises:
        SentBefore: the decision was carried out before, or is being carried out now.
        DomainError: the service refused. The audit log records the refusal; nothing else is known to have changed.
    """
    way = _ask_approval if action.kind else _reaching_out if action.reaches_out else _in_one_transaction
    try:
        return way(action, row, decision)
    except DomainError as refusal:
        _note(action, row, decision, "refused", outcome=refusal.code)
        raise


def _ask_approval(action: ReasonedAction, row: Any, decision: Decision) -> str:
    # The unique key also protects against two concurrent submissions of the page.
    if ApprovalRequest.objects.filter(key=decision.key(row)).exists():
        raise SentBefore("See its history for the outcome.")
    return action.run(row, decision) or action.label


@transaction.atomic
def _in_one_transaction(action: ReasonedAction, row: Any, decision: Decision) -> str:
    # Written before the action, so that the second of two concurrent submissions waits here for the first.
    if _note(action, row, decision, once=True) is None:
        raise SentBefore("See its history for the outcome.")
    return action.run(row, decision) or action.label


def _reaching_out(action: ReasonedAction, row: Any, decision: Decision) -> str:
    with try_lease(decision.key(row)) as acquired:
        if not acquired:
            raise SentBefore("It is in progress.")
        if audit.is_recorded(decision.key(row)):
            raise SentBefore("See its history for the outcome.")
        _note(action, row, decision, "begun")
        try:
            result = action.run(row, decision) or action.label
        except DomainError:
            raise
        except Exception as fault:
            _note(action, row, decision, "failed", outcome=type(fault).__name__)
            raise
        _note(action, row, decision, once=True, outcome=result)
        return result


def _note(
    action: ReasonedAction,
    row: Any,
    decision: Decision,
    stage: str = "",
    *,
    once: bool = False,
    outcome: str = "",
) -> LogEntry | None:
    """Write an audit entry. The final one (`once`) has the changes; return None if the decision already has one."""
    inputs = {**decision.inputs, **({"outcome": outcome} if outcome else {})}
    return audit.record(
        actor=decision.actor,
        row=row,
        action=f"{action.name} {stage}".strip(),
        reason=decision.reason,
        changes={name: ("", audit.shown(name, value)) for name, value in inputs.items()}
        | (dict(action.changes(row)) if once else {}),
        decision=decision.key(row) if once else "",
        name=action.subject,
    )


# The maximum number of rows per action, because staff would not read a longer list before confirming.
MOST_ROWS = 100


class ReasonedActions(AdminMixin):
    """Offers `staff_actions` in the list and on the row's page; each needs a reason."""

    staff_actions: ClassVar[Sequence[ReasonedAction]] = ()
    change_form_outer_before_template = "admin/staff_actions.html"
    list_before_template = "admin/staff_actions.html"

    def awaited(self, row: Any) -> str:
        """
        Return what the row waits for and will have without a click, in words; empty for nothing.

        Its page and the list show it, and reload themselves when it has changed.
        """
        return ""

    def get_urls(self) -> list[Any]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_do"
        confirm = path("do/<slug:name>/", self.admin_site.admin_view(self.confirm), name=name)
        return [confirm, *super().get_urls()]

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        of_rows = [
            action for action in self.staff_actions if action.is_allowed(request) and not action.subject
        ]
        offered = {action.name: (self._chosen(action), action.name, action.label) for action in of_rows}
        return {**super().get_actions(request), **offered}

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        unsaved = self.model()
        offered = [
            {"label": action.label, "url": self.confirm_url(action, [])}
            for action in self.staff_actions
            if action.subject and action.is_allowed(request) and action.applies_to(unsaved)
        ]
        return {**super().list_context(request), "staff_actions": offered}

    def form_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        own = {"staff_actions": self.offered_for(request, row), "awaited": row and self.awaited(row)}
        return {**super().form_context(request, row), **own}

    def offered_for(self, request: HttpRequest, row: Any) -> list[dict[str, str]]:
        """Return label and URL of each action that the signed-in user may apply to the row."""
        return [
            {"label": action.label, "url": self.confirm_url(action, [row.pk])}
            for action in self.staff_actions
            if row is not None
            and not action.subject
            and action.is_allowed(request)
            and not action.why_not(row, staff_of(request))
        ]

    def confirm_url(self, action: ReasonedAction, ids: Sequence[Any]) -> str:
        page = self.page_url("do", action.name)
        return f"{page}?{urlencode({'ids': ','.join(map(str, ids))})}" if ids else page

    def confirm(self, request: HttpRequest, name: str) -> HttpResponse:
        """Show the confirmation page; on POST, apply the action."""
        action = next((action for action in self.staff_actions if action.name == name), None)
        if action is None:
            raise Http404
        if not (action.is_allowed(request) and self.has_view_permission(request)):
            raise PermissionDenied
        ids = _ids(request)
        if len(ids) > MOST_ROWS:
            return self._too_many(request)
        rows = [self.model()] if action.subject else self._rows(request, ids)
        is_sent = request.method == "POST"
        initial = {"token": uuid.uuid4(), **action.initial(rows)}
        form = action.form(request.POST if is_sent else None, initial=initial)
        if is_sent and form.is_valid():
            result = self._do(request, action, rows, dict(form.cleaned_data))
            if result is not None:
                return result
        return TemplateResponse(
            request, "admin/confirm_staff_action.html", self._page(request, action, rows, form)
        )

    def _page(
        self, request: HttpRequest, action: ReasonedAction, rows: list[Any], form: ReasonForm
    ) -> dict[str, Any]:
        actor = staff_of(request)
        reasons = [(row, action.why_not(row, actor)) for row in rows]
        return {
            **self.admin_site.each_context(request),
            "title": action.label,
            "opts": self.opts,
            "form": form,
            "effects": [
                (action.name_of(row), action.effect_for(row, actor)) for row, why in reasons if not why
            ],
            "others": [(action.name_of(row), why) for row, why in reasons if why],
            "back": self.page_url("changelist")
            if action.subject or len(rows) > 1
            else self.page_url("change", rows[0].pk),
        }

    def _rows(self, request: HttpRequest, ids: Sequence[str]) -> list[Any]:
        rows = [self.get_object(request, row_id) for row_id in ids]
        if not rows or None in rows:
            raise Http404
        return rows

    def _do(
        self, request: HttpRequest, action: ReasonedAction, rows: list[Any], inputs: dict[str, Any]
    ) -> HttpResponse | None:
        """Apply the action to the rows, and return a redirect; None if it was refused for all of them."""
        reason, token = inputs.pop("reason"), inputs.pop("token")
        decision = Decision(
            actor=staff_of(request), action=action.name, reason=reason, inputs=inputs, token=token
        )
        refused = [self._is_refused(request, action, row, decision) for row in rows]
        if all(refused):
            return None
        if len(rows) == 1 and type(rows[0]).objects.filter(pk=rows[0].pk).exists():
            return HttpResponseRedirect(self.page_url("change", rows[0].pk))
        return HttpResponseRedirect(self.page_url("changelist"))

    def _is_refused(self, request: HttpRequest, action: ReasonedAction, row: Any, decision: Decision) -> bool:
        """Apply the action to the row and show a message; return whether the service refused it."""
        name = action.name_of(row)
        if not action.applies_to(row):
            messages.warning(request, f"{name}: {action.label} does not apply.")
            return False
        try:
            result = carry_out(action, row, decision)
        except SentBefore as repeat:
            messages.warning(request, f"{name}: this page was sent before. {repeat}")
        except DomainError as refusal:
            messages.error(request, f"{name}: {refusal.title}. {refusal.detail}")
            return True
        else:
            has_markup = isinstance(result, SafeString)
            said = format_html("{}: {}", name, result) if has_markup else f"{name}: {result}"
            link = _link_to_request(row, decision) if action.kind else ""
            messages.success(request, format_html("{} {}", said, link) if link else said)
        return False

    def _chosen(self, action: ReasonedAction) -> Callable[..., HttpResponse]:
        def go(model_admin: Any, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse:
            ids = list(queryset.values_list("pk", flat=True)[: MOST_ROWS + 1])
            if len(ids) > MOST_ROWS:
                return self._too_many(request)
            return HttpResponseRedirect(self.confirm_url(action, ids))

        return go

    def _too_many(self, request: HttpRequest) -> HttpResponse:
        messages.error(request, f"Nothing was done. Select at most {MOST_ROWS} rows at a time.")
        return HttpResponseRedirect(self.page_url("changelist"))


def _link_to_request(row: Any, decision: Decision) -> SafeString | str:
    approval = ApprovalRequest.objects.filter(key=decision.key(row)).first()
    return link_to(approval) if approval else ""


def link_to(approval: ApprovalRequest) -> SafeString:
    """Return a link to the request's page, for a message."""
    page = reverse("admin:gateway_admin_approvalrequest_change", args=[approval.pk])
    return format_html('<a href="{}" class="underline">Open request {}</a>', page, approval.pk)


def _ids(request: HttpRequest) -> list[str]:
    return list(dict.fromkeys(part for part in request.GET.get("ids", "").split(",") if part))
