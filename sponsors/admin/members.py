"""Members of sponsors and their API keys in the admin."""

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from gateway.admin.actions import Decision, ReasonedAction, ReasonedActions, ReasonForm
from gateway.admin.base import ReadOnlyAdmin
from gateway.common import clock
from gateway.common.fields import checksum
from sponsors.models import ApiKey, Member, Sponsor
from sponsors.services import keys, members


class MemberForm(ReasonForm):
    """A profile and its role."""

    profile = forms.CharField(
        max_length=42,
        widget=UnfoldAdminTextInputWidget(),
        help_text="The address of a profile that has signed in here before.",
    )
    role = forms.ChoiceField(
        choices=Member.Role.choices, initial=Member.Role.OWNER, widget=UnfoldAdminSelectWidget()
    )
    field_order = ("profile", "role", "reason")

    def clean_profile(self) -> str:
        """Return the address in EIP-55 form."""
        try:
            return checksum(self.cleaned_data["profile"].strip())
        except ValueError as error:
            raise ValidationError("Enter a 20-byte hex address.") from error


def _put_member(row: Sponsor, decision: Decision) -> str:
    profile, role = decision.inputs["profile"], decision.inputs["role"]
    members.put(sponsor=row, profile_address=profile, role=role)
    return f"{profile} is now a member with the role {role}."


PUT_MEMBER = ReasonedAction(
    name="put_member",
    label="Add a member",
    permission="sponsors.add_member",
    effect=lambda row: f"The person can act for {row.name} from now on, with this role.",
    run=_put_member,
    form=MemberForm,
)


def _remove_member(row: Member, decision: Decision) -> str:
    members.remove(member=row)
    return "The membership has ended."


REMOVE_MEMBER = ReasonedAction(
    name="remove_member",
    label="Remove",
    permission="sponsors.add_member",
    effect=lambda row: (
        f"The person can no longer act for {row.sponsor.name}. The API keys and webhooks that the person made end, and "
        "so do open invitations."
    ),
    run=_remove_member,
)


@admin.register(Member)
class MemberAdmin(ReasonedActions, ReadOnlyAdmin):
    """Members of sponsors. Staff add the first owner on the sponsor's page; owners add and invite others."""

    list_display = ("id", "sponsor", "user", "email", "role", "created_at")
    list_select_related = ("sponsor", "user")
    search_fields = ("sponsor__slug__exact",)
    ordering = ("sponsor_id", "id")
    staff_actions = (REMOVE_MEMBER,)


def _revoke_key(row: ApiKey, decision: Decision) -> str:
    keys.revoke(key=row, now=clock.now())
    return "The key was revoked."


REVOKE_KEY = ReasonedAction(
    name="revoke_key",
    label="Revoke",
    permission="sponsors.freeze_sponsor",
    effect=lambda row: "Requests with this key are refused from now on.",
    run=_revoke_key,
    applies_to=lambda row: row.revoked_at is None,
)


@admin.register(ApiKey)
class ApiKeyAdmin(ReasonedActions, ReadOnlyAdmin):
    """API keys of sponsors' servers. Members create and rotate them through the API."""

    list_display = (
        "id",
        "sponsor",
        "name",
        "hint",
        "scopes",
        "created_by",
        "last_used_at",
        "expires_at",
        "revoked_at",
    )
    list_select_related = ("sponsor", "created_by")
    search_fields = ("sponsor__slug__exact",)
    exclude = ("key_hash",)
    ordering = ("-id",)
    staff_actions = (REVOKE_KEY,)
