"""Postback trials: show how the service would respond to a request, without storing anything."""

from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from earnings.models import AdNetwork
from earnings.networks import ADAPTERS
from earnings.networks.base import Adapter
from earnings.services import trial
from gateway.admin.base import StaffAdmin
from gateway.common import clock

_MAX_ADDRESS_LENGTH = 16 * 1024


class TrialForm(forms.Form):
    """The complete URL that the network would call, and its signature header, if any."""

    address = forms.CharField(
        max_length=_MAX_ADDRESS_LENGTH,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4, "autocomplete": "off"}),
        help_text="The URL from the network's test tool, with all parameters. Nothing is stored or credited.",
    )
    signature = forms.CharField(
        required=False, max_length=300, widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"})
    )

    body = forms.CharField(
        required=False,
        max_length=_MAX_ADDRESS_LENGTH,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4, "autocomplete": "off"}),
        help_text="The body of a POST; empty for a GET.",
    )

    def __init__(self, *args: Any, adapter: Adapter | None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if adapter is not None and adapter.signature_header:
            self.fields["signature"].help_text = f"The header {adapter.signature_header}."
        else:
            del self.fields["signature"]
        if adapter is None or "POST" not in adapter.methods or not adapter.has_path_token:
            del self.fields["body"]


class TrialPage(StaffAdmin[AdNetwork]):
    """Adds a page for postback trials to a network's pages."""

    def get_urls(self) -> list[Any]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_try"
        view = self.admin_site.admin_view(self.try_view)
        return [path("<int:network_id>/try/", view, name=name), *super().get_urls()]

    def try_view(self, request: HttpRequest, network_id: int) -> HttpResponse:
        network: AdNetwork | None = self.get_object(request, str(network_id))
        if not self.has_change_permission(request, network):
            raise PermissionDenied
        if network is None:
            raise Http404
        adapter = ADAPTERS.get(network.slug)
        form = TrialForm(request.POST if request.method == "POST" else None, adapter=adapter)
        result = None
        if form.is_valid():
            result = trial.try_postback(
                network=network,
                address=form.cleaned_data["address"].strip(),
                signature=form.cleaned_data.get("signature", ""),
                body=form.cleaned_data.get("body", ""),
                now=clock.now(),
            )
        context = {
            **self.admin_site.each_context(request),
            "title": f"Try a postback of {network}",
            "opts": self.opts,
            "form": form,
            "submit_label": "Try",
            "sentence": result.sentence if result else "",
            "details": result.accepted.details() if result and result.accepted else [],
            "back": self.page_url("change", network.pk),
            "back_label": "Back to the network",
        }
        return TemplateResponse(request, "admin/form_with_result.html", context)
