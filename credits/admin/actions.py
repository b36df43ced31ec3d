"""What staff do about credits, each through its service."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from django import forms
from django.conf import settings
from unfold.widgets import (
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
)

from credits.models import AdjustmentDecision, AdjustmentRequest, AdNetwork, ModifierType
from credits.models.adjustments import LARGEST_ADJUSTMENT
from credits.services import ad_networks, adjustments, modifiers, network_secrets
from gateway.common.decisions import Decision, ReasonedAction, ReasonForm
from gateway.common.owner import ProfileOwner

Owner = Callable[[Any], ProfileOwner]
_YEAR_MINUTES = 366 * 24 * 60


class AdjustForm(ReasonForm):
    """How much."""

    credits = forms.IntegerField(
        min_value=-LARGEST_ADJUSTMENT,
        max_value=LARGEST_ADJUSTMENT,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="Whole credits; negative to take away.",
    )
    field_order = ("credits", "reason")

    def clean_credits(self) -> int:
        """Refuse to move nothing."""
        moved: int = self.cleaned_data["credits"]
        if not moved:
            raise forms.ValidationError("An adjustment moves at least one credit.")
        return moved


def adjust_credits(owner: Owner) -> ReasonedAction:
    """Return the action for rows whose user `owner` returns."""

    def run(row: Any, decision: Decision) -> str:
        asked = adjustments.request(
            user=owner(row),
            credits=decision.answers["credits"],
            key=decision.key(row),
            actor=decision.actor,
            reason=decision.reason,
        )
        if asked.decision == AdjustmentDecision.PENDING:
            return f"Adjustment {asked.pk} over {asked.credits:+d} credits waits for a second person."
        return f"{asked.credits:+d} credits are posted."

    return ReasonedAction(
        name="adjust_credits",
        label="Adjust credits",
        permission="credits.add_adjustmentrequest",
        effect=lambda row: (
            f"For {owner(row).profile_address}. "
            f"Up to {settings.ADJUSTMENT_APPROVAL_LIMIT:,} credits per user and day are posted at once, "
            "by an entry that names you and your reason. More waits until a second person approves."
        ),
        run=run,
        form=AdjustForm,
        applies_to=lambda row: owner(row).profile_address is not None,
    )


class ModifierForm(ReasonForm):
    """Which bonus, how much, and for how long."""

    modifier_type = forms.ChoiceField(choices=ModifierType.choices, widget=UnfoldAdminSelectWidget)
    value = forms.DecimalField(
        min_value=Decimal("0.0001"),
        max_value=Decimal(10),
        decimal_places=4,
        widget=UnfoldAdminDecimalFieldWidget,
        help_text="A fraction that is added to the badges': 0.05 is 5 % more.",
    )
    minutes = forms.IntegerField(
        min_value=1,
        max_value=_YEAR_MINUTES,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="From now on; a day has 1440.",
    )
    field_order = ("modifier_type", "value", "minutes", "reason")


def grant_modifier(owner: Owner) -> ReasonedAction:
    """Return the action for rows whose user `owner` returns."""

    def run(row: Any, decision: Decision) -> str:
        given = modifiers.grant(
            user=owner(row),
            modifier_type=ModifierType(decision.answers["modifier_type"]),
            value=decision.answers["value"],
            minutes=decision.answers["minutes"],
            key=decision.key(row),
            reason=decision.reason,
            actor=decision.actor,
        )
        return (
            f"{given.get_modifier_type_display()} +{given.value} until {given.expires_at:%Y-%m-%d %H:%M} UTC."
        )

    return ReasonedAction(
        name="grant_modifier",
        label="Grant a modifier",
        permission="credits.add_modifier",
        effect=lambda row: (
            f"For {owner(row).profile_address}. A bonus is added to the badges' from now on, and ends by itself."
        ),
        run=run,
        form=ModifierForm,
        applies_to=lambda row: owner(row).profile_address is not None,
    )


def _waits(row: AdjustmentRequest) -> bool:
    return row.decision == AdjustmentDecision.PENDING


def _told(row: AdjustmentRequest) -> str:
    return f"{row.credits:+d} credits for {row.user}, asked for by {row.requested_by}: {row.reason}"


def _approve(row: AdjustmentRequest, decision: Decision) -> str:
    adjustments.approve(request_id=row.pk, actor=decision.actor)
    return f"{row.credits:+d} credits are posted."


def _reject(row: AdjustmentRequest, decision: Decision) -> str:
    adjustments.reject(request_id=row.pk, actor=decision.actor)
    return "Nothing is posted."


APPROVE_ADJUSTMENT = ReasonedAction(
    name="approve",
    label="Approve",
    permission="credits.decide_adjustment",
    effect=lambda row: f"Posted at once: {_told(row)}",
    run=_approve,
    applies_to=_waits,
)
REJECT_ADJUSTMENT = ReasonedAction(
    name="reject",
    label="Reject",
    permission="credits.decide_adjustment",
    effect=lambda row: f"Never posted: {_told(row)}",
    run=_reject,
    applies_to=_waits,
)


def _switch(row: AdNetwork, *, is_enabled: bool) -> str:
    changed = ad_networks.switch(slug=row.slug, is_enabled=is_enabled)
    state = "enabled" if is_enabled else "paused"
    return f"It is {state} from now on." if changed else f"It was {state} before."


PAUSE_NETWORK = ReasonedAction(
    name="pause",
    label="Pause",
    permission="credits.change_adnetwork",
    effect=lambda row: (
        "Its postbacks are refused until it is resumed; most networks send them again. Held credits wait."
    ),
    run=lambda row, decision: _switch(row, is_enabled=False),
    applies_to=lambda row: row.is_enabled,
)
RESUME_NETWORK = ReasonedAction(
    name="resume",
    label="Resume",
    permission="credits.change_adnetwork",
    effect=lambda row: "Its postbacks are believed again.",
    run=lambda row, decision: _switch(row, is_enabled=True),
    applies_to=lambda row: not row.is_enabled,
)


def _issue(row: AdNetwork, decision: Decision) -> str:
    token = ad_networks.issue_path_token(slug=row.slug)
    return f"Copy it now, it is not shown again: {ad_networks.address_of(slug=row.slug, token=token)}"


def _retire(row: AdNetwork, decision: Decision) -> str:
    network_secrets.retire_secret(slug=row.slug)
    return "Only the newest secret is believed."


ISSUE_ADDRESS = ReasonedAction(
    name="issue_address",
    label="Issue a new address",
    permission="credits.change_adnetwork",
    effect=lambda row: "A new address is shown once, for the network's own pages. The old one ends at once.",
    run=_issue,
)
RETIRE_SECRET = ReasonedAction(
    name="retire_secret",
    label="Retire the previous secret",
    permission="credits.change_adnetwork",
    effect=lambda row: "Postbacks signed with the secret before the newest are refused.",
    run=_retire,
)
