"""Trying a network's postback on its page, before the network sends one."""

from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from credits.models import AdNetwork, PostbackKind
from credits.networks.registry import ADAPTERS
from credits.services import postback_trial
from gateway.common.admin import StaffAdmin

_LONGEST_ADDRESS = 16 * 1024


class TrialForm(forms.Form):
    """The whole address that the network would call, and the header that signs it where one does."""

    address = forms.CharField(
        max_length=_LONGEST_ADDRESS,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4, "autocomplete": "off"}),
        help_text="As the network's test tool made it, with all parameters. Nothing is stored and nobody is credited.",
    )
    signature = forms.CharField(
        required=False, max_length=300, widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"})
    )

    def __init__(self, *args: Any, header: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if header:
            self.fields["signature"].help_text = f"The header {header}."
        else:
            del self.fields["signature"]


class Trying(StaffAdmin[AdNetwork]):
    """Adds the page `try` to a network's."""

    def get_urls(self) -> list[Any]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_try"
        view = self.admin_site.admin_view(self.try_view)
        return [path("<int:network_id>/try/", view, name=name), *super().get_urls()]

    def try_url(self, network: AdNetwork) -> str:
        """Return where a postback of the network is tried."""
        return reverse(f"{self.admin_site.name}:credits_adnetwork_try", args=[network.pk])

    def try_view(self, request: HttpRequest, network_id: int) -> HttpResponse:
        """Ask for an address, and show what would come of it."""
        network: AdNetwork | None = self.get_object(request, str(network_id))
        if not self.has_change_permission(request, network):
            raise PermissionDenied
        if network is None:
            raise Http404
        header = ADAPTERS[network.slug].signature_header if network.slug in ADAPTERS else ""
        form = TrialForm(request.POST if request.method == "POST" else None, header=header)
        verdict = None
        if form.is_valid():
            verdict = postback_trial.judge(
                network=network,
                address=form.cleaned_data["address"].strip(),
                signature=form.cleaned_data.get("signature", ""),
                now=timezone.now(),
            )
        context = {
            **self.admin_site.each_context(request),
            "title": f"Try a postback of {network}",
            "opts": self.opts,
            "form": form,
            "verdict": verdict,
            "facts": _facts(verdict.meaning) if verdict and verdict.meaning else [],
            "back": reverse(f"{self.admin_site.name}:credits_adnetwork_change", args=[network.pk]),
        }
        return TemplateResponse(request, "admin/credits/adnetwork/try.html", context)


def _facts(meaning: postback_trial.Meaning) -> list[tuple[str, str]]:
    """Return what the postback says by labels, without what it leaves open."""
    event, user, before = meaning.event, meaning.user, meaning.before
    told = [
        ("says", PostbackKind(event.kind).label),
        ("id", event.external_id),
        ("takes back", event.original_id if event.kind == PostbackKind.REVERSAL else ""),
        ("user", str(user.profile_address) if user else ""),
        ("amount", f"{event.amount:f}"),
        ("credits before bonuses", str(meaning.worth)),
        ("payout in USD", "" if event.payout_usd is None else f"{event.payout_usd:f}"),
        (
            "at, by the network's clock",
            f"{event.occurred_at:%Y-%m-%d %H:%M:%S} UTC" if event.occurred_at else "",
        ),
        ("came before", before.get_state_display() if before else "no"),
        ("would be answered", meaning.answer),
    ]
    return [(label, fact) for label, fact in told if fact]
