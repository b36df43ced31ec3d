"""
Forms of the admin that need approval: prices, permissions and secrets.

A valid form leads to a page that shows its effect and who decides, and asks for a reason. Confirming creates a request.
Approval writes the fields to the row, unless one of them has changed since. It works without JavaScript.
"""

import uuid
from typing import Any, ClassVar

from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html

from gateway.admin import columns
from gateway.admin.actions import ReasonForm, link_to
from gateway.admin.mixins import AdminMixin, staff_of
from gateway.common.errors import DomainError
from gateway.staff import approvals, audit
from gateway.staff.approval_kinds import AboveCeiling, Kind
from gateway.staff.form_kinds import values_of
from gateway.staff.models import ApprovalRequest

_CONFIRMED = "_confirmed"
_BUTTONS = {"_save", "_continue", "_addanother", "csrfmiddlewaretoken", _CONFIRMED}


class ApprovedForm(AdminMixin):
    """
    Requests approval for a valid form, after a page that shows its effect and asks for a reason.

    `preview_template` renders the return value of `preview_of` as `preview`. The page contains the submitted values, so
    such a form must not contain a secret.
    """

    change_form_outer_before_template = "admin/staff_actions.html"
    saves: ClassVar[Kind]
    preview_template: ClassVar[str] = ""

    def preview_of(self, form: Any) -> Any:
        """Return further effects of saving the form, for the preview."""
        return None

    def takes_approval(self, row: Any) -> bool:
        """Return whether saving the row needs approval; `row` is None for a new row."""
        return True

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """Return a form whose validation also refuses amounts above a ceiling, so that staff keep what they typed."""
        page = self

        class Checked(super().get_form(request, obj, change, **kwargs)):  # type: ignore[misc]
            def _post_clean(self) -> None:
                super()._post_clean()
                if not self.errors and page.takes_approval(obj):
                    page.require_below_ceilings(self)

        return Checked

    def require_below_ceilings(self, form: Any) -> None:
        values = {"object_id": str(form.instance.pk or ""), "payload": self.payload_of(form)}
        try:
            self.saves.check(ApprovalRequest(**values))
        except AboveCeiling as refusal:
            form.add_error(None, refusal.detail)

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
            result = self._ask(request, form, reasons.cleaned_data)
            if result is not None:
                return result
        return self._approval_page(request, object_id, form, reasons)

    def _ask(self, request: HttpRequest, form: Any, why: dict[str, Any]) -> HttpResponse | None:
        """Store the request and redirect to its page; if it is refused, show a message and return None."""
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
            return None
        outcome = approvals.outcome_of(approval, "It is saved.")
        messages.success(request, format_html("{} {}", outcome, link_to(approval)))
        return HttpResponseRedirect(reverse("admin:gateway_admin_approvalrequest_change", args=[approval.pk]))

    def payload_of(self, form: Any) -> dict[str, Any]:
        """Return the new and the current values of the changed fields."""
        stored = self.model._base_manager.filter(pk=form.instance.pk).first()
        own = {field.name for field in self.opts.concrete_fields}
        related = {field.name for field in self.opts.many_to_many}
        values = values_of(form.instance, [name for name in form.changed_data if name in own])
        for name in related.intersection(form.changed_data):
            values[name] = " ".join(sorted(str(row.pk) for row in form.cleaned_data[name]))
        return {"values": values, "before": values_of(stored, values) if stored else {}}

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
