"""Pausing a network, and its secrets and addresses, which change after approval. No page shows a secret."""

from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminPasswordWidget

from earnings.models import AdNetwork
from earnings.services import networks
from gateway.admin import columns
from gateway.admin.actions import Decision, ReasonedAction, ReasonForm
from gateway.common import clock
from gateway.staff import approval_kinds, approvals
from gateway.staff.approval_kinds import Done, Kind
from gateway.staff.models import ApprovalRequest


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
    networks.set_sealed_secret(slug=network.slug, sealed=approval.payload["sealed"], now=clock.now())
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
    sealed = networks.sealed(decision.inputs["new_secret"])
    return _ask_for(SECRET, row, decision, {"sealed": sealed}, "secret")


def _ask_for_address(row: AdNetwork, decision: Decision) -> str:
    token = networks.new_path_token()
    result = _ask_for(ADDRESS, row, decision, {"token_hash": networks.path_token_hash(token)}, "address")
    address = networks.address_of(slug=row.slug, token=token)
    return columns.shown_once(f"{result} The address:", address)


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
