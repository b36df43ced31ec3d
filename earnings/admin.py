"""
The admin of ad networks and their postbacks: settings, postback trials, and decisions about held earnings.

No page shows a secret; a new address is shown once.
"""

from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.postgres.forms import SimpleArrayField
from django.core.exceptions import PermissionDenied
from django.db.models import Max, OuterRef, QuerySet, Subquery
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path
from django.utils import timezone
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from credits.admin import OwnedAdmin
from earnings import queries
from earnings.models import AdNetwork, NetworkUser, Postback, PostbackState
from earnings.networks import ADAPTERS
from earnings.networks.base import Adapter, is_weak
from earnings.services import earnings, networks, trial, unassigned
from earnings.states import Event, allows
from gateway.admin import columns, navigation
from gateway.admin.actions import Decision, ReasonedAction, ReasonedActions, ReasonForm
from gateway.admin.approval_forms import ApprovedForm
from gateway.admin.base import StaffAdmin
from gateway.common.crypto import SealedUnderAnotherKey
from gateway.staff import approval_kinds, approvals
from gateway.staff.approval_kinds import AboveCeiling, Done, Kind
from gateway.staff.form_kinds import Values, form_kind
from gateway.staff.models import ApprovalRequest
from users.models import User

navigation.register(
    "Ad networks",
    {"earnings.AdNetwork": "hub", "earnings.Postback": "webhook", "earnings.NetworkUser": "alternate_email"},
)


_State = PostbackState
columns.describe(
    {
        _State.RECEIVED: "Waiting for its credit",
        _State.PENDING: "Pending at the network",
        _State.UNASSIGNED: "Names no user",
        _State.HELD: "Held",
        _State.AVAILABLE: "Credited",
        _State.REFUSED: "Refused",
    }
)
columns.colour("good", _State.AVAILABLE)
columns.colour("bad", _State.REFUSED)
columns.colour("waiting", _State.HELD, _State.PENDING, _State.RECEIVED, _State.UNASSIGNED)


def _switch(row: AdNetwork, *, is_enabled: bool) -> str:
    changed = networks.switch(slug=row.slug, is_enabled=is_enabled)
    state = "enabled" if is_enabled else "paused"
    return f"It is {state} now." if changed else f"It was {state} already."


PAUSE_NETWORK = ReasonedAction(
    name="pause",
    label="Pause",
    permission="earnings.change_adnetwork",
    effect=lambda row: (
        "Its postbacks are refused until it is resumed; most networks resend them. Held credits wait."
    ),
    run=lambda row, decision: _switch(row, is_enabled=False),
    applies_to=lambda row: row.is_enabled,
)
RESUME_NETWORK = ReasonedAction(
    name="resume",
    label="Resume",
    permission="earnings.change_adnetwork",
    effect=lambda row: "Its postbacks are accepted again.",
    run=lambda row, decision: _switch(row, is_enabled=True),
    applies_to=lambda row: not row.is_enabled,
)


def _retire(row: AdNetwork, decision: Decision) -> str:
    networks.retire_secret(slug=row.slug)
    return "Only the newest secret is accepted."


def _set_secret(approval: ApprovalRequest) -> Done:
    network = AdNetwork.objects.get(pk=approval.object_id)
    networks.set_sealed_secret(slug=network.slug, sealed=approval.payload["sealed"], now=timezone.now())
    return Done("The new secret is accepted; the previous one stays valid until it is retired.", network)


def _issue(approval: ApprovalRequest) -> Done:
    network = AdNetwork.objects.get(pk=approval.object_id)
    networks.accept_path_token(slug=network.slug, token_hash=approval.payload["token_hash"])
    return Done("The new address is accepted; the old one is not.", network)


SECRET = approval_kinds.register(
    Kind(
        name="set_network_secret",
        title="Set the secret of an ad network",
        asks="earnings.change_adnetwork",
        decides="earnings.decide_adnetwork",
        carry_out=_set_secret,
    )
)
ADDRESS = approval_kinds.register(
    Kind(
        name="issue_network_address",
        title="Issue a new address to an ad network",
        asks="earnings.change_adnetwork",
        decides="earnings.decide_adnetwork",
        carry_out=_issue,
    )
)


class SecretForm(ReasonForm):
    new_secret = forms.CharField(
        widget=UnfoldAdminPasswordWidget(render_value=False, attrs={"autocomplete": "new-password"}),
    )
    field_order = ("new_secret", "reason")


def _ask_for(kind: Kind, row: AdNetwork, decision: Decision, payload: dict[str, Any], what: str) -> str:
    approval = approvals.ask(
        kind=kind,
        actor=decision.actor,
        reason=decision.reason,
        key=decision.key(row),
        row=row,
        payload=payload,
        changes={what: ("", "a new one")},
    )
    return approvals.outcome_of(approval, kind.title)


def _ask_for_secret(row: AdNetwork, decision: Decision) -> str:
    sealed = networks.sealed(decision.answers["new_secret"])
    return _ask_for(SECRET, row, decision, {"sealed": sealed}, "secret")


def _ask_for_address(row: AdNetwork, decision: Decision) -> str:
    token = networks.new_path_token()
    answer = _ask_for(ADDRESS, row, decision, {"token_hash": networks.path_token_hash(token)}, "address")
    address = networks.address_of(slug=row.slug, token=token)
    return f"{answer} Copy the address now; it is shown only once: {address}"


SET_SECRET = ReasonedAction(
    name="set_secret",
    label="Set a new secret",
    permission="earnings.change_adnetwork",
    effect=lambda row: "It becomes valid when approved; the previous one stays valid until it is retired.",
    run=_ask_for_secret,
    form=SecretForm,
    kind=SECRET,
)
ISSUE_ADDRESS = ReasonedAction(
    name="issue_address",
    label="Issue a new address",
    permission="earnings.change_adnetwork",
    effect=lambda row: (
        "The new address is shown once, to enter at the network. When approved, it replaces the old one."
    ),
    run=_ask_for_address,
    kind=ADDRESS,
)
RETIRE_SECRET = ReasonedAction(
    name="retire_secret",
    label="Retire the previous secret",
    permission="earnings.change_adnetwork",
    effect=lambda row: "Postbacks signed with the previous secret will be refused.",
    run=_retire,
)


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
                now=timezone.now(),
            )
        context = {
            **self.admin_site.each_context(request),
            "title": f"Try a postback of {network}",
            "opts": self.opts,
            "form": form,
            "result": result,
            "details": result.accepted.details() if result and result.accepted else [],
            "back": self.page_url("change", network.pk),
        }
        return TemplateResponse(request, "admin/earnings/adnetwork/try.html", context)


_SETTINGS = (
    "is_enabled",
    "rate",
    "allowed_ad_units",
    "allowed_addresses",
    "per_event_cap",
    "daily_cap",
    "hold_hours",
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
        """Whether the form changes an existing network's rate, whose effect is then previewed."""
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
        figures = queries.totals_of(row, now=timezone.now()) if row else []
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
        return queries.rate_effect(network=form.instance, before=form.initial["rate"], now=timezone.now())

    @admin.display(description="rewards")
    def rewards(self, network: AdNetwork) -> str:
        adapter = ADAPTERS.get(network.slug)
        return str(adapter.kind.label) if adapter else "no adapter"

    @admin.display(description="proven", boolean=True)
    def is_proven(self, network: AdNetwork) -> bool | None:
        adapter = ADAPTERS.get(network.slug)
        if adapter is None or not adapter.methods or not adapter.has_path_token:
            return None  # No third party's signature is verified.
        return bool(adapter.proven_by)

    @admin.display(description="proof")
    def proof(self, network: AdNetwork) -> str:
        adapter = ADAPTERS.get(network.slug)
        if adapter is None or self.is_proven(network) is None:
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


def _release(row: Postback, decision: Decision) -> str:
    approval = earnings.request_release(
        postback_id=row.pk, actor=decision.actor, reason=decision.reason, key=decision.key(row)
    )
    return approvals.outcome_of(approval, f"{approval.amount} credits were posted.")


def _forfeit(row: Postback, decision: Decision) -> str:
    earnings.forfeit(postback_id=row.pk)
    return "Its credits will not be posted."


RELEASE_EARLY = ReasonedAction(
    name="release_early",
    label="Release early",
    permission="earnings.decide_earning",
    effect=lambda row: (
        f"The remainder of {row.credits} credits is posted to {row.user} now, "
        f"instead of at {row.available_at:%Y-%m-%d %H:%M} UTC. "
        "The network can still reverse it, even after the credits are spent."
    ),
    run=_release,
    applies_to=lambda row: allows(row, Event.RELEASE) and row.available_at is not None,
    kind=earnings.RELEASE,
    person=lambda row: row.user,
)
RELEASE_BEYOND_CAP = ReasonedAction(
    name="release_beyond_cap",
    label="Release beyond the cap",
    permission="earnings.decide_earning",
    effect=lambda row: (
        f"The remainder of {row.credits} credits is posted to {row.user}. It is held because: "
        f"{row.get_hold_reason_display()}. Compare it with the network's own page first."
    ),
    run=_release,
    applies_to=lambda row: allows(row, Event.RELEASE) and row.available_at is None,
    kind=earnings.RELEASE_BEYOND_CAP,
    person=lambda row: row.user,
)
FORFEIT = ReasonedAction(
    name="forfeit",
    label="Forfeit",
    permission="earnings.decide_earning",
    effect=lambda row: (
        f"{row.user} will not receive the {row.credits} credits. Only an adjustment can undo this."
    ),
    run=_forfeit,
    applies_to=lambda row: allows(row, Event.FORFEIT) and row.user_id is not None,
)


class AssignForm(ReasonForm):
    profile_address = forms.CharField(
        max_length=42,
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
        help_text="The person's profile. The network's support can tell whose earning it is.",
    )
    field_order = ("profile_address", "reason")

    def clean_profile_address(self) -> User:
        address = self.cleaned_data["profile_address"].strip()
        user = User.objects.filter(profile_address=address.lower()).first()
        if user is None:
            raise forms.ValidationError("No profile with this address has signed in.")
        return user


def _assign(row: Postback, decision: Decision) -> str:
    approval = unassigned.request_assignment(
        postback_id=row.pk,
        user=decision.answers["profile_address"],
        actor=decision.actor,
        reason=decision.reason,
        key=decision.key(row),
    )
    return approvals.outcome_of(approval, "It is decided as the person's.")


def _close(row: Postback, decision: Decision) -> str:
    unassigned.close(postback_id=row.pk)
    return "It is closed without an effect."


ASSIGN = ReasonedAction(
    name="assign",
    label="Give to a person",
    permission="earnings.decide_earning",
    effect=lambda row: (
        f"The {row.get_kind_display().lower()} of {row.amount.normalize():f} becomes the person's."
    ),
    run=_assign,
    form=AssignForm,
    applies_to=lambda row: allows(row, Event.ASSIGN),
    kind=unassigned.ASSIGN,
)
CLOSE = ReasonedAction(
    name="close",
    label="Close",
    permission="earnings.decide_earning",
    effect=lambda row: (
        "It will have no effect. What a reversal should take back, an adjustment can take from the person."
    ),
    run=_close,
    applies_to=unassigned.can_be_closed,
)


class OfNetworkAdmin(OwnedAdmin):
    owner_path = "user"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("network")


@admin.register(Postback)
class PostbackAdmin(ReasonedActions, OfNetworkAdmin):
    """Every postback with the factors of its credits; held ones can be released or forfeited."""

    staff_actions = (RELEASE_EARLY, RELEASE_BEYOND_CAP, FORFEIT, ASSIGN, CLOSE)
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
    list_filter = ("network", "kind", "state", "hold_reason", "refused_because", "is_conflicting")
    search_fields = ("external_id__exact", "request_id__exact")
    list_defer = ("raw", "headers")
    exclude = ("raw",)
    readonly_fields = ("as_it_came",)

    @admin.display(description="as received")
    def as_it_came(self, postback: Postback) -> str:
        return bytes(postback.raw).decode("utf-8", errors="replace")

    @admin.display(description="profile")
    def profile(self, row: Postback) -> str:
        return super().profile(row) if row.user_id else ""


@admin.register(NetworkUser)
class NetworkUserAdmin(OfNetworkAdmin):
    list_display = ("network", "reference", "profile")
    search_fields = ("reference__exact",)
