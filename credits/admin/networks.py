"""Ad networks are set up here, and their postbacks are read here. No page shows a secret, not even a new one again."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.postgres.forms import SimpleArrayField
from django.db.models import Max, OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget

from credits.admin import actions, earnings
from credits.admin.ledger import OwnedAdmin
from credits.admin.trying import Trying
from credits.models import AdNetwork, NetworkUser, Postback
from credits.networks.contract import is_weak
from credits.networks.registry import ADAPTERS
from credits.services import ad_networks, network_figures, network_rates, network_secrets, postback_trial
from credits.services.network_rates import Effect
from gateway.common.previewed import Previewed
from gateway.common.sealing import SealedUnderAnotherKey
from gateway.common.staff_actions import ReasonedActions

_SETTINGS = (
    "is_enabled",
    "rate",
    "allowed_ad_units",
    "allowed_addresses",
    "per_event_cap",
    "daily_cap",
    "hold_hours",
)
# The page between would have to give the secret back.
_ONE_BY_ONE = "Save the rate first and the secret after it: what a rate does is shown before it is saved."


class AdNetworkForm(forms.ModelForm[AdNetwork]):
    """Settings, and a field that takes a secret and never gives one back."""

    new_secret = forms.CharField(
        required=False,
        strip=True,
        widget=UnfoldAdminPasswordWidget(render_value=False, attrs={"autocomplete": "new-password"}),
        help_text="Signs from now on; the one before it stays live until it is retired.",
    )
    allowed_addresses = SimpleArrayField(
        forms.CharField(max_length=49),
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="IP addresses or networks that may send, separated by commas; empty lets any.",
    )

    allowed_ad_units = SimpleArrayField(
        forms.CharField(max_length=60),
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="Of AdMob: your ad units, separated by commas. Google signs those of others as well.",
    )

    class Meta:
        model = AdNetwork
        fields: ClassVar = ("slug", *_SETTINGS)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "slug" in self.fields:
            known = set(AdNetwork.objects.values_list("slug", flat=True))
            free = [(slug, adapter.title) for slug, adapter in ADAPTERS.items() if slug not in known]
            self.fields["slug"] = forms.ChoiceField(choices=free, label="Network")

    @property
    def changes_rate(self) -> bool:
        """Whether a network that is there gets another rate, whose effect is then shown first."""
        return bool(self.instance.pk) and "rate" in self.changed_data

    def clean(self) -> None:
        super().clean()
        if self.changes_rate and self.cleaned_data.get("new_secret"):
            self.add_error("new_secret", _ONE_BY_ONE)

    def _post_clean(self) -> None:
        slug = self.instance.slug or self.cleaned_data.get("slug", "")
        if slug in ADAPTERS:
            self.instance.is_weak = is_weak(ADAPTERS[slug])
        super()._post_clean()  # type: ignore[misc]


@admin.register(AdNetwork)
class AdNetworkAdmin(Previewed, ReasonedActions, Trying):
    """Settings change through the service; addresses and secrets by their own actions."""

    form = AdNetworkForm
    preview_template = "staff/network_rate_preview.html"
    list_display = ("slug", "rewards", "is_enabled", "is_weak", "rate", "hold_hours", "secrets", "last_event")
    ordering = ("slug",)
    staff_actions = (
        actions.PAUSE_NETWORK,
        actions.RESUME_NETWORK,
        actions.ISSUE_ADDRESS,
        actions.RETIRE_SECRET,
    )
    readonly_fields = ("is_weak", "secrets", "secret_changed_at")
    fields = ("slug", *_SETTINGS, "new_secret", "is_weak", "secrets", "secret_changed_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[AdNetwork]:
        latest = Postback.objects.filter(network=OuterRef("pk")).order_by().values("network")
        rows: QuerySet[AdNetwork] = super().get_queryset(request)
        return rows.annotate(last_event_at=Subquery(latest.annotate(at=Max("received_at")).values("at")))

    def get_readonly_fields(self, request: HttpRequest, obj: AdNetwork | None = None) -> Any:
        return ("slug", *self.readonly_fields) if obj else self.readonly_fields

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        network = self.get_object(request, object_id)
        figures = network_figures.figures_of(network, now=timezone.now()) if network else []
        return super().change_view(
            request, object_id, form_url, {**(extra_context or {}), "figures": figures}
        )

    def offered_for(self, request: HttpRequest, row: Any) -> list[dict[str, str]]:
        offered = super().offered_for(request, row)
        if row is not None and self.has_change_permission(request, row) and postback_trial.can_be_tried(row):
            offered.append({"label": "Try a postback", "url": self.try_url(row)})
        return offered

    def has_delete_permission(self, request: HttpRequest, obj: AdNetwork | None = None) -> bool:
        # Its postbacks name it; a network that is no longer used is disabled.
        return False

    def preview_of(self, form: AdNetworkForm) -> Effect | None:
        if not form.changes_rate:
            return None
        return network_rates.effect_of(network=form.instance, before=form.initial["rate"], now=timezone.now())

    def save_model(self, request: HttpRequest, obj: AdNetwork, form: Any, change: bool) -> None:
        """Let the service write."""
        values = {name: form.cleaned_data[name] for name in _SETTINGS}
        obj.pk = ad_networks.configure(slug=obj.slug, **values).pk
        if form.cleaned_data["new_secret"]:
            network_secrets.set_secret(
                slug=obj.slug, secret=form.cleaned_data["new_secret"], now=timezone.now()
            )

    @admin.display(description="rewards")
    def rewards(self, network: AdNetwork) -> str:
        adapter = ADAPTERS.get(network.slug)
        return str(adapter.kind.label) if adapter else "no adapter"

    @admin.display(description="live secrets")
    def secrets(self, network: AdNetwork) -> str:
        try:
            return str(len(network_secrets.live_secrets(network)))
        except SealedUnderAnotherKey:
            return "cannot be read: enter them anew, or set the old key again"

    @admin.display(description="last event", ordering="last_event_at")
    def last_event(self, network: AdNetwork) -> Any:
        return getattr(network, "last_event_at", None)


class OfNetworkAdmin(OwnedAdmin):
    """Rows of a user at a network."""

    owner_path = "user"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("network")


@admin.register(Postback)
class PostbackAdmin(ReasonedActions, OfNetworkAdmin):
    """Every event with the factors of its credits; what is held waits, or is decided by staff."""

    staff_actions = (earnings.RELEASE_EARLY, earnings.FORFEIT)
    list_display = (
        "id",
        "network",
        "kind",
        "state",
        "profile",
        "amount",
        "rate",
        "credits",
        "is_conflicting",
        "received_at",
    )
    list_filter = ("network", "kind", "state", "refused_because", "is_conflicting")
    search_fields = ("external_id__exact", "request_id__exact")
    list_defer = ("raw", "headers")
    exclude = ("raw",)
    readonly_fields = ("as_it_came",)

    @admin.display(description="as it came")
    def as_it_came(self, postback: Postback) -> str:
        return bytes(postback.raw).decode("utf-8", errors="replace")

    @admin.display(description="profile")
    def profile(self, row: Postback) -> str:
        return super().profile(row) if row.user_id else ""


@admin.register(NetworkUser)
class NetworkUserAdmin(OfNetworkAdmin):
    """Which user a network means."""

    list_display = ("network", "reference", "profile")
    search_fields = ("reference__exact",)
