"""The simulator: shows whether a sponsor would pay for a call, under which policy and how much, or why it refuses."""

import re
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.html import format_html
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from gateway.admin.actions import ReasonedActions
from gateway.admin.base import AppendOnlyAdmin
from gateway.common import clock
from gateway.common.errors import DomainError
from gateway.common.fields import SAFE_INTEGER_MAX, checksum
from sponsors.models import Sponsor
from sponsors.rules.calls import PROFILE, Action
from sponsors.rules.choosing import Decision
from sponsors.rules.functions import NotAFunction, selectors_of
from sponsors.services.simulation import ImaginedCall, simulate

_ACTION = re.compile(r"(profile|0x[0-9a-f]{40})(?:\s+(.*))?", re.IGNORECASE)
_GWEI = 10**9


class SimulationForm(forms.Form):
    """A call, described by its profile, actions and cost."""

    profile = forms.CharField(
        max_length=42,
        widget=UnfoldAdminTextInputWidget(),
        help_text="Its address. A profile that has never signed in counts as new.",
    )
    actions = forms.CharField(
        max_length=4_000,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4}),
        help_text=(
            "The functions that are called, one per line: a contract's address or the word profile, then a selector "
            "or a function such as transfer(address,uint256), or nothing for a transfer of LYX."
        ),
    )
    credits = forms.IntegerField(
        min_value=1,
        max_value=SAFE_INTEGER_MAX,
        widget=UnfoldAdminIntegerFieldWidget(),
        help_text="The highest cost of the call.",
    )
    gas_price = forms.IntegerField(
        label="Gas price in gwei",
        min_value=0,
        max_value=10**6,
        initial=1,
        widget=UnfoldAdminIntegerFieldWidget(),
    )
    voucher_for = forms.CharField(
        required=False,
        max_length=40,
        widget=UnfoldAdminTextInputWidget(),
        help_text="The name of a policy, if the call has a valid voucher for it.",
    )

    def clean_profile(self) -> str:
        """Return the address in EIP-55 form."""
        try:
            return checksum(self.cleaned_data["profile"].strip())
        except ValueError as error:
            raise ValidationError("Enter a 20-byte hex address.") from error

    def clean_actions(self) -> list[Action]:
        """Parse each line as a contract and a function that the call calls."""
        lines = [line.strip() for line in self.cleaned_data["actions"].splitlines() if line.strip()]
        return [_action(line) for line in lines]


def _action(line: str) -> Action:
    parts = _ACTION.fullmatch(line)
    if parts is None:
        raise ValidationError(f"“{line[:60]}” is not a contract followed by a selector.")
    contract = parts[1].lower()
    try:
        (function,) = selectors_of(parts[2] or "")
    except NotAFunction as error:
        raise ValidationError(str(error)) from error
    except ValueError as error:
        raise ValidationError("Several functions have this name. Write the types too.") from error
    return Action(contract if contract == PROFILE else checksum(contract), function)


def _sentence(decision: Decision) -> str:
    if decision.paid_by is None:
        return "No policy pays for this call."
    return (
        f"Policy {decision.paid_by.policy} pays {decision.sponsor_credits} credits, "
        f"and the user {decision.user_credits}."
    )


class SimulatorPage(ReasonedActions, AppendOnlyAdmin):
    """Adds the simulator to a sponsor's pages."""

    def offered_for(self, request: HttpRequest, row: Any) -> list[dict[str, str]]:
        offered = super().offered_for(request, row)
        if row is not None:
            offered.append({"label": "Would it pay?", "url": self.page_url("simulate", row.pk)})
        return offered

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.simulator_view)
        return [
            path("<int:sponsor_id>/simulate/", view, name="sponsors_sponsor_simulate"),
            *super().get_urls(),
        ]

    def simulator_view(self, request: HttpRequest, sponsor_id: int) -> HttpResponse:
        """Show the form; after a POST, also which policy would pay, and the rule of each policy that refuses."""
        sponsor: Sponsor | None = self.get_object(request, str(sponsor_id))
        if not self.has_view_permission(request, sponsor):
            raise PermissionDenied
        if sponsor is None:
            raise Http404
        form = SimulationForm(request.POST if request.method == "POST" else None)
        result: dict[str, Any] = {}
        if form.is_valid():
            values = form.cleaned_data
            call = ImaginedCall(
                profile=values["profile"],
                actions=values["actions"],
                credits=values["credits"],
                gas_price_wei=values["gas_price"] * _GWEI,
                voucher_for=values["voucher_for"],
            )
            result = _result(sponsor, call)
        context = {
            **self.admin_site.each_context(request),
            "title": f"Would {sponsor.name} pay for a call?",
            "opts": self.opts,
            "form": form,
            "submit_label": "Ask",
            "back": self.page_url("change", sponsor.pk),
            "back_label": "Back to the sponsor",
            **result,
        }
        return TemplateResponse(request, "admin/form_with_result.html", context)


def _result(sponsor: Sponsor, call: ImaginedCall) -> dict[str, Any]:
    try:
        decision = simulate(sponsor=sponsor, call=call, now=clock.now())
    except DomainError as refusal:
        return {"sentence": refusal.detail}
    details = [
        (each.version.policy, format_html("{} <code>{}</code>", each.refusal.detail, each.refusal.code))
        for each in decision.refusals
    ]
    return {"sentence": _sentence(decision), "details": details}
