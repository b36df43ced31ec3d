"""Actions on one postback: release or forfeit a held earning, assign one to a person, or close one."""

from django import forms
from unfold.widgets import UnfoldAdminTextInputWidget

from earnings.models import Postback
from earnings.services import earnings, unassigned
from earnings.states import Event, allows
from gateway.admin.actions import Decision, ReasonedAction, ReasonForm
from gateway.staff import approvals
from users.models import User


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
        user=decision.inputs["profile_address"],
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
