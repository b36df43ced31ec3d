"""The page that requests a refund: it shows the credits that the refund takes back, then asks for a reason."""

import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html
from unfold.widgets import UnfoldAdminDecimalFieldWidget

from gateway.admin.actions import Decision, ReasonedAction, ReasonForm, link_to
from gateway.admin.mixins import AdminMixin, staff_of
from gateway.common import clock
from gateway.common.errors import DomainError
from gateway.staff import approvals
from gateway.staff.models import ApprovalRequest
from payments.amounts import MINOR_UNITS
from payments.models import Payout, Refund
from payments.services import refunds
from payments.services.refunds import REFUND, Preview


class AmountForm(forms.Form):
    """The amount to refund; the page previews a changed amount before staff can confirm it."""

    amount = forms.DecimalField(
        min_value=0, decimal_places=2, max_digits=12, required=False, widget=UnfoldAdminDecimalFieldWidget
    )

    def minor(self) -> int | None:
        """Return the amount in minor units; None if staff left it empty, to refund everything that is left."""
        amount = self.cleaned_data["amount"]
        return None if amount is None else int(amount * MINOR_UNITS)


class RefundForm(ReasonForm):
    """The reason, and the amounts that the page showed; if the amounts have changed since, no refund is requested."""

    amount_minor = forms.IntegerField(min_value=1, widget=forms.HiddenInput)
    credits = forms.IntegerField(min_value=0, widget=forms.HiddenInput)


class Refundable(AdminMixin):
    """Adds the action that refunds a payment to the page of its payout."""

    change_form_outer_before_template = "admin/staff_actions.html"

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.refund_view)
        return [path("<int:payout_id>/refund/", view, name="payments_payout_refund"), *super().get_urls()]

    def form_context(self, request: HttpRequest, row: Payout | None) -> dict[str, Any]:
        context = super().form_context(request, row)
        if row is not None and row.is_refundable and self._may_refund(request):
            action = {"label": "Refund", "url": self.page_url("refund", row.pk)}
            context["staff_actions"] = [*context.get("staff_actions", ()), action]
        return context

    def refund_view(self, request: HttpRequest, payout_id: int) -> HttpResponse:
        """Show the effect of the refund and the form for the reason; on POST, request the refund."""
        if not self._may_refund(request):
            raise PermissionDenied
        payout: Payout | None = self.get_object(request, str(payout_id))
        if payout is None:
            raise Http404
        try:
            return self._refund(request, payout)
        except DomainError as refusal:
            # Staff retry by reloading the page.
            context = {"refusal": f"Nothing was done. {refusal.title}. {refusal.detail}"}
            return self._page(request, payout, context)

    def _refund(self, request: HttpRequest, payout: Payout) -> HttpResponse:
        now = clock.now()
        if request.method != "POST":
            amount = AmountForm(request.GET)
            preview = refunds.preview_of(
                payout=payout, amount_minor=amount.minor() if amount.is_valid() else None, now=now
            )
            return self._ask_why(request, preview, RefundForm(initial=_shown(preview)))
        form = RefundForm(request.POST)
        if not form.is_valid():
            preview = refunds.preview_of(payout=payout, amount_minor=_sent(request), now=now)
            return self._ask_why(request, preview, form)
        inputs = form.cleaned_data
        preview = refunds.preview_of(payout=payout, amount_minor=inputs["amount_minor"], now=now)
        if preview.credits != inputs["credits"]:
            messages.warning(
                request, "Nothing was done: the credits to take back have changed. Review the refund again."
            )
            return self._ask_why(request, preview, RefundForm(initial=_shown(preview)))
        key = f"staff:{inputs['token']}:{REFUND.name}"
        try:
            approval = refunds.request(
                preview=preview, actor=staff_of(request), reason=inputs["reason"], key=key
            )
        except DomainError as refusal:
            messages.error(request, f"Nothing was done. {refusal.title}. {refusal.detail}")
            return self._ask_why(request, preview, form)
        done = (
            f"{preview.shown(preview.amount_minor)} is being refunded by Stripe. This page shows the outcome."
        )
        messages.success(
            request, format_html("{} {}", approvals.outcome_of(approval, done), link_to(approval))
        )
        return HttpResponseRedirect(_page_of(approval))

    def _ask_why(self, request: HttpRequest, preview: Preview, form: RefundForm) -> HttpResponse:
        payout = preview.payout
        context = {
            "preview": preview,
            "amounts": [
                ("Paid", preview.shown(payout.charged_minor)),
                ("Refunded or disputed so far", preview.shown(preview.returned_minor)),
                ("To refund now", preview.shown(preview.amount_minor)),
            ],
            "amount": AmountForm(initial={"amount": f"{preview.amount_minor / MINOR_UNITS:.2f}"}),
            "notice": approvals.notice(kind=REFUND, actor=staff_of(request), person=payout.user),
            "form": form,
        }
        return self._page(request, payout, context)

    def _page(self, request: HttpRequest, payout: Payout, context: dict[str, Any]) -> HttpResponse:
        own = {"title": f"Refund {payout}", "opts": self.opts, "back": self.page_url("change", payout.pk)}
        site = self.admin_site.each_context(request)
        return TemplateResponse(request, "payments/refund.html", {**site, **own, **context})

    def _may_refund(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request) and request.user.has_perm(REFUND.asks)


def _shown(preview: Preview) -> dict[str, Any]:
    return {"token": uuid.uuid4(), "amount_minor": preview.amount_minor, "credits": preview.credits}


def _sent(request: HttpRequest) -> int | None:
    text = request.POST.get("amount_minor", "")
    return int(text) if text.isascii() and text.isdigit() else None


def _page_of(approval: ApprovalRequest) -> str:
    """Return the page of the refund, or of the request that waits for approval."""
    refund = Refund.objects.filter(approval=approval).first()
    if refund is not None:
        return reverse("admin:payments_refund_change", args=[refund.pk])
    return reverse("admin:gateway_admin_approvalrequest_change", args=[approval.pk])


def _send_again(row: Refund, decision: Decision) -> str:
    refund = refunds.send(refund_id=str(row.pk), now=clock.now())
    return f"Stripe's response: {refund.get_status_display()} ({refund.outcome})."


SEND_AGAIN = ReasonedAction(
    name="send",
    label="Send to Stripe now",
    permission="payments.send_refund",
    effect=lambda row: (
        "The refund is sent to Stripe now. Stripe returns the money once, even if this is repeated."
    ),
    run=_send_again,
    applies_to=lambda row: row.status == Refund.Status.PENDING,
    reaches_out=True,
)
