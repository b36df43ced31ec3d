"""
Forms of the admin whose saving takes approval: prices, powers and secrets.

Sent and valid, a form leads to a page that shows what it would do, and who decides, and asks why. Confirmed, it
becomes a request; approved, its fields are written to the row as it is then, unless they have changed meanwhile.
It works without JavaScript.
"""

import uuid
from collections.abc import Callable
from typing import Any, ClassVar

from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import ValidationError
from django.db.models import Field, Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from gateway.admin import approval_kinds, approvals, audit, columns
from gateway.admin.actions import ReasonForm
from gateway.admin.approval_kinds import Done, Kind, RequestOutdated
from gateway.admin.audit import AdminMixin, staff_of
from gateway.admin.models import ApprovalRequest
from gateway.common.errors import DomainError

_CONFIRMED = "_confirmed"
_BUTTONS = {"_save", "_continue", "_addanother", "csrfmiddlewaretoken", _CONFIRMED}
Values = dict[str, str | None]


def save(row: Model, values: Values) -> Model:
    row.full_clean()
    row.save()
    return row


def form_kind(
    *,
    name: str,
    title: str,
    model: type[Model],
    asks: str,
    decides: str,
    check: Callable[[Any], None] = lambda row: None,
    save: Callable[[Any, Values], Model] = save,
) -> Kind:
    """
    Register the kind of request that writes fields of a row of the model.

    `check` gets the row as it would be, and raises `AboveCeiling`; `save` validates and stores it.
    """

    def carry_out(approval: ApprovalRequest) -> Done:
        row = _locked(model, approval)
        if _values(row, approval.payload["before"]) != approval.payload["before"]:
            raise RequestOutdated(
                "The row is no longer as the request shows it. Reject the request and ask again."
            )
        _write(row, approval.payload["values"])
        try:
            saved = save(row, approval.payload["values"])
        except ValidationError as error:
            raise RequestOutdated(" ".join(error.messages)) from error
        for name in _relations(saved, approval.payload["values"]):
            getattr(saved, name).set((approval.payload["values"][name] or "").split())
        return Done(f"{saved} is saved.", saved)

    def check_row(approval: ApprovalRequest) -> None:
        row = model._default_manager.get(pk=approval.object_id) if approval.object_id else model()
        _write(row, approval.payload["values"])
        check(row)

    return approval_kinds.register(
        Kind(name=name, title=title, asks=asks, decides=decides, carry_out=carry_out, check=check_row)
    )


def _locked(model: type[Model], approval: ApprovalRequest) -> Model:
    if not approval.object_id:
        return model()
    return model._default_manager.select_for_update(of=("self",)).get(pk=approval.object_id)


def _field(row: Model, name: str) -> "Field[Any, Any]":
    field: Field[Any, Any] = row._meta.get_field(name)  # type: ignore[assignment]
    return field


def _relations(row: Model, values: Values) -> list[str]:
    return [name for name in values if _field(row, name).many_to_many]


def _values(row: Model, names: Any) -> Values:
    """Return the named fields as text that `_write` reads back; of related rows their keys."""
    return {name: _text(row, _field(row, name)) for name in names}


def _text(row: Model, field: "Field[Any, Any]") -> str | None:
    value = field.value_from_object(row)
    if field.many_to_many:
        return " ".join(sorted(str(related.pk) for related in value))
    return None if value is None else field.value_to_string(row)


def _write(row: Model, values: Values) -> None:
    """Set the fields of the row itself; related rows are set once it is stored."""
    for name in values.keys() - set(_relations(row, values)):
        field = _field(row, name)
        setattr(row, field.attname, field.to_python(values[name]))


class ApprovedForm(AdminMixin):
    """
    Asks for approval of what a valid form would save, after a page that shows its effect and asks why.

    `preview_template` draws what `preview_of` returns, as `preview`. The page carries what was sent, so no such form
    may hold a secret.
    """

    change_form_outer_before_template = "admin/staff_actions.html"
    saves: ClassVar[Kind]
    preview_template: ClassVar[str] = ""

    def preview_of(self, form: Any) -> Any:
        """Return what saving the valid form would do, besides the change of its fields."""
        return None

    def takes_approval(self, row: Any) -> bool:
        """Return whether saving the row takes approval; None is a new one."""
        return True

    def form_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        context = super().form_context(request, row)
        if self._may_save(request, row) and self.takes_approval(row):
            context["approval_notice"] = approvals.notice(kind=self.saves, actor=staff_of(request))
        return context

    def _may_save(self, request: HttpRequest, row: Any) -> bool:
        return self.has_change_permission(request, row) if row else self.has_add_permission(request)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        row = self.get_object(request, unquote(object_id)) if object_id else None
        is_sent = request.method == "POST" and (row is not None or not object_id)
        if is_sent and self._may_save(request, row) and self.takes_approval(row):
            form = self.get_form(request, row, change=row is not None)(request.POST, instance=row)
            if form.is_valid():
                return self._ask_why(request, object_id, form)
        return super().changeform_view(request, object_id, form_url, extra_context)

    def _ask_why(self, request: HttpRequest, object_id: str | None, form: Any) -> HttpResponse:
        if object_id and not form.changed_data:
            messages.info(request, "Nothing was changed.")
            return HttpResponseRedirect(request.path)
        is_confirmed = _CONFIRMED in request.POST
        reasons = ReasonForm(
            request.POST if is_confirmed else None, prefix="why", initial={"token": uuid.uuid4()}
        )
        if is_confirmed and reasons.is_valid():
            return self._ask(request, form, reasons.cleaned_data)
        return self._approval_page(request, object_id, form, reasons)

    def _ask(self, request: HttpRequest, form: Any, why: dict[str, Any]) -> HttpResponse:
        try:
            approval = approvals.ask(
                kind=self.saves,
                actor=staff_of(request),
                reason=why["reason"],
                key=f"staff:{why['token']}:{self.saves.name}",
                row=form.instance,
                payload=self.payload_of(form),
                changes=audit.changes_of(form, is_new=form.instance.pk is None),
            )
        except DomainError as refusal:
            messages.error(request, f"{refusal.title}. {refusal.detail}")
            return HttpResponseRedirect(request.path)
        messages.success(request, approvals.outcome_of(approval, "It is saved."))
        return HttpResponseRedirect(reverse("admin:gateway_admin_approvalrequest_change", args=[approval.pk]))

    def payload_of(self, form: Any) -> dict[str, Any]:
        """Return the changed fields of the row: as they would be, and as they are."""
        stored = self.model._base_manager.filter(pk=form.instance.pk).first()
        own = {field.name for field in self.opts.concrete_fields}
        related = {field.name for field in self.opts.many_to_many}
        values = _values(form.instance, [name for name in form.changed_data if name in own])
        for name in related.intersection(form.changed_data):
            values[name] = " ".join(sorted(str(row.pk) for row in form.cleaned_data[name]))
        return {"values": values, "before": _values(stored, values) if stored else {}}

    def _approval_page(
        self, request: HttpRequest, object_id: str | None, form: Any, reasons: ReasonForm
    ) -> HttpResponse:
        own = {*_BUTTONS, *(reasons.add_prefix(name) for name in reasons.fields)}
        context = {
            **self.admin_site.each_context(request),
            "title": f"{self.saves.title}: {form.instance}",
            "opts": self.opts,
            "form": reasons,
            "changes": columns.changes(self.model, audit.changes_of(form, is_new=form.instance.pk is None)),
            "notice": approvals.notice(kind=self.saves, actor=staff_of(request)),
            "preview": self.preview_of(form),
            "preview_template": self.preview_template,
            "sent": [
                (name, value) for name, values in request.POST.lists() if name not in own for value in values
            ],
            "confirmed": _CONFIRMED,
            "back": request.path if object_id else self.page_url("changelist"),
        }
        return TemplateResponse(request, "admin/ask_approval.html", context)
