"""Ad networks: their settings, which change after approval, with a preview of a new rate."""

from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.postgres.forms import SimpleArrayField
from django.db.models import Max, OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminTextInputWidget

from earnings import queries
from earnings.admin.secrets import ISSUE_ADDRESS, PAUSE_NETWORK, RESUME_NETWORK, RETIRE_SECRET, SET_SECRET
from earnings.admin.trial import TrialPage
from earnings.models import AdNetwork, Postback
from earnings.networks import ADAPTERS
from earnings.networks.base import is_weak
from earnings.services import networks, trial
from gateway.admin import columns
from gateway.admin.actions import ReasonedActions
from gateway.admin.approval_forms import ApprovedForm
from gateway.common import clock
from gateway.common.crypto import SealedUnderAnotherKey
from gateway.staff.approval_kinds import AboveCeiling
from gateway.staff.form_kinds import Values, form_kind

_SETTINGS = (
    "is_enabled",
    "rate",
    "allowed_ad_units",
    "allowed_addresses",
    "per_event_cap",
    "daily_cap",
    "hold_hours",
    "offers_url",
)


def _list_field(max_length: int, help_text: str) -> SimpleArrayField:
    items = forms.CharField(max_length=max_length)
    return SimpleArrayField(items, required=False, widget=UnfoldAdminTextInputWidget, help_text=help_text)


class AdNetworkForm(forms.ModelForm[AdNetwork]):
    """Settings of a network; actions set its secrets and addresses."""

    allowed_addresses = _list_field(
        49, "IP addresses or networks that may send, separated by commas; empty allows any."
    )
    allowed_ad_units = _list_field(
        60, "For AdMob: your ad units, separated by commas. Google also signs those of other publishers."
    )

    class Meta:
        model = AdNetwork
        fields: ClassVar = ("slug", *_SETTINGS)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "slug" in self.fields:
            existing = set(AdNetwork.objects.values_list("slug", flat=True))
            choices = [(slug, adapter.title) for slug, adapter in ADAPTERS.items() if slug not in existing]
            self.fields["slug"] = forms.ChoiceField(choices=choices, label="Network")

    @property
    def changes_rate(self) -> bool:
        """Whether the form changes an existing network's rate, so that the page previews the effect."""
        return bool(self.instance.pk) and "rate" in self.changed_data

    def _post_clean(self) -> None:
        slug = self.instance.slug or self.cleaned_data.get("slug", "")
        if slug in ADAPTERS:
            self.instance.is_weak = is_weak(ADAPTERS[slug])
        super()._post_clean()  # type: ignore[misc]


def _check_network(network: AdNetwork) -> None:
    if network.rate > settings.CEILING_NETWORK_RATE:
        raise AboveCeiling(f"A rate is at most {settings.CEILING_NETWORK_RATE:,} credits per unit.")
    if max(network.per_event_cap, network.daily_cap) > settings.CEILING_NETWORK_CAP:
        raise AboveCeiling(f"A cap is at most {settings.CEILING_NETWORK_CAP:,} credits.")


def _configure(network: Any, values: Values) -> AdNetwork:
    changed = {name: getattr(network, name) for name in values if name != "slug"}
    return networks.configure(slug=network.slug, **changed)


def _is_proven(network: AdNetwork) -> bool | None:
    adapter = ADAPTERS.get(network.slug)
    if adapter is None or not adapter.methods or not adapter.has_path_token:
        return None  # The adapter verifies no third party's signature.
    return bool(adapter.proven_by)


@admin.register(AdNetwork)
class AdNetworkAdmin(ApprovedForm, ReasonedActions, TrialPage):
    """Settings, addresses and secrets change after approval; one person can pause a network."""

    form = AdNetworkForm
    preview_template = "earnings/rate_preview.html"
    saves = form_kind(
        name="configure_ad_network",
        title="Configure an ad network",
        model=AdNetwork,
        asks="earnings.change_adnetwork",
        decides="earnings.decide_adnetwork",
        check=_check_network,
        save=_configure,
    )
    list_display = (
        "slug",
        "rewards",
        "is_enabled",
        "is_weak",
        "is_proven",
        "rate",
        "hold_hours",
        "secrets",
        "last_event",
    )
    ordering = ("slug",)
    staff_actions = (PAUSE_NETWORK, RESUME_NETWORK, SET_SECRET, ISSUE_ADDRESS, RETIRE_SECRET)
    readonly_fields = ("is_weak", "proof", "secrets", "secret_changed_at")
    fields = ("slug", *_SETTINGS, *readonly_fields)

    def get_queryset(self, request: HttpRequest) -> QuerySet[AdNetwork]:
        latest = Postback.objects.filter(network=OuterRef("pk")).order_by().values("network")
        rows: QuerySet[AdNetwork] = super().get_queryset(request)
        return rows.annotate(last_event_at=Subquery(latest.annotate(at=Max("received_at")).values("at")))

    def get_readonly_fields(self, request: HttpRequest, obj: AdNetwork | None = None) -> Any:
        return ("slug", *self.readonly_fields) if obj else self.readonly_fields

    def form_context(self, request: HttpRequest, row: AdNetwork | None) -> dict[str, Any]:
        figures = queries.totals_of(row, now=clock.now()) if row else []
        return {**super().form_context(request, row), "figures": figures}

    def offered_for(self, request: HttpRequest, row: Any) -> list[dict[str, str]]:
        offered = super().offered_for(request, row)
        if row is not None and self.has_change_permission(request, row) and trial.can_be_tried(row):
            offered.append({"label": "Try a postback", "url": self.page_url("try", row.pk)})
        return offered

    def has_delete_permission(self, request: HttpRequest, obj: AdNetwork | None = None) -> bool:
        return False  # Postbacks reference it, so an unused network is disabled instead of deleted.

    def preview_of(self, form: AdNetworkForm) -> queries.RateEffect | None:
        if not form.changes_rate:
            return None
        return queries.rate_effect(network=form.instance, before=form.initial["rate"], now=clock.now())

    @admin.display(description="rewards")
    def rewards(self, network: AdNetwork) -> str:
        adapter = ADAPTERS.get(network.slug)
        return str(adapter.kind.label) if adapter else "no adapter"

    @admin.display(description="proven")
    def is_proven(self, network: AdNetwork) -> str:
        return columns.yes_or_no(_is_proven(network))

    @admin.display(description="proof")
    def proof(self, network: AdNetwork) -> str:
        adapter = ADAPTERS.get(network.slug)
        if adapter is None or _is_proven(network) is None:
            return "Not needed: this network sends no postbacks, or calls our own link."
        if adapter.proven_by:
            return f"Verified with a postback signed by the network: {adapter.proven_by}"
        return "Unverified: no postback signed by the network is public. Let it send a test postback first."

    @admin.display(description="live secrets")
    def secrets(self, network: AdNetwork) -> str:
        try:
            return str(len(networks.live_secrets(network)))
        except SealedUnderAnotherKey:
            return "cannot be decrypted: enter them again, or restore the old key"

    @admin.display(description="last event", ordering="last_event_at")
    def last_event(self, network: AdNetwork) -> Any:
        return getattr(network, "last_event_at", None)
