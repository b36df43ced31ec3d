"""The admin of sign-in: sessions, which staff can end, account deletions, and trusted implementations."""

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.timezone import now

from gateway.admin import columns, navigation
from gateway.admin.actions import Decision, ReasonedAction, ReasonedActions
from gateway.admin.approval_forms import ApprovedForm
from gateway.admin.base import ReadOnlyAdmin, StaffAdmin
from gateway.admin.search import people_like
from gateway.common.fields import checksum
from gateway.staff import approvals
from gateway.staff.form_kinds import Values, form_kind
from users.models import AccountDeletion, Phone, SignInSession, TrustedImplementation, User
from users.services import invitations, second_factors, sessions, staff, trusted_code

navigation.register(
    "People",
    {"users.User": "group", "users.SignInSession": "login", "users.AccountDeletion": "person_remove"},
)
navigation.register("System", {"users.Phone": "phonelink_lock"})
navigation.register("Relay", {"users.TrustedImplementation": "verified_user"})


def _end(row: SignInSession, decision: Decision) -> str:
    ended = sessions.end(session_id=row.pk, reason=SignInSession.Reason.STAFF, now=now())
    return "It is ended." if ended else "It had already ended."


END_SESSION = ReasonedAction(
    name="revoke",
    label="End the session",
    permission="users.revoke_signinsession",
    effect=lambda row: "All its tokens end at once; the wallet must sign in again.",
    run=_end,
    applies_to=lambda row: row.revoked_at is None,
)


def _end_all(row: User, decision: Decision) -> str:
    return f"{sessions.end_all(user_id=row.pk, reason=SignInSession.Reason.STAFF, now=now())} sessions are ended."


END_SESSIONS = ReasonedAction(
    name="revoke_sessions",
    label="End all sessions",
    permission="users.revoke_signinsession",
    effect=lambda row: "The tokens of every session end at once; the wallet must sign in again.",
    run=_end_all,
    applies_to=lambda row: row.sign_in_sessions.active(now=now()).exists(),
)


def _reset_password(row: User, decision: Decision) -> str:
    approval = staff.request_password(
        person=row, actor=decision.actor, reason=decision.reason, key=decision.key(row)
    )
    return f"{approvals.outcome_of(approval, '')} Then make the invitation link on the user's page."


RESET_PASSWORD = ReasonedAction(
    name="reset_password",
    label="Reset the password",
    permission="users.manage_staff",
    effect=lambda row: (
        "They choose a new password with a link from you and a code from the person who approves. "
        "Until then the present password is valid; Lock out ends it at once."
    ),
    run=_reset_password,
    applies_to=lambda row: row.is_staff,
    kind=staff.PASSWORD,
)


def _reset_second_factor(row: User, decision: Decision) -> str:
    approval = staff.request_second_factor(
        person=row, actor=decision.actor, reason=decision.reason, key=decision.key(row)
    )
    return f"{approvals.outcome_of(approval, '')} They then set up a phone at the next login."


RESET_SECOND_FACTOR = ReasonedAction(
    name="reset_second_factor",
    label="Reset the second factor",
    permission="users.manage_staff",
    effect=lambda row: (
        "Once approved, their phone and recovery codes stop working. Anyone who logs in with the password "
        "then sets up a new phone. If others may know the password, reset it as well."
    ),
    run=_reset_second_factor,
    applies_to=lambda row: row.is_staff,
    kind=staff.SECOND_FACTOR,
)


def _make_link(row: User, decision: Decision) -> str:
    token = invitations.make_link(row, actor=decision.actor)
    address = f"{settings.PUBLIC_URL}{reverse('admin:invitation', args=[token])}"
    return columns.shown_once(
        f"Send this link to {row}; the code comes from the person who approved.", address
    )


def _why_no_link(row: User, actor: Any) -> str:
    invitation = invitations.open_invitation(row)
    is_mine = invitation is not None and invitation.approved_by_id == actor.pk
    return "You approved it and have the code, so a colleague makes the link." if is_mine else ""


MAKE_LINK = ReasonedAction(
    name="make_link",
    label="Make the invitation link",
    permission="users.manage_staff",
    effect=lambda row: (
        "The link is shown once and replaces an earlier one. It opens a page on which they choose the password, "
        "with the code of the person who approved."
    ),
    run=_make_link,
    applies_to=lambda row: row.is_staff and invitations.open_invitation(row) is not None,
    refusal=_why_no_link,
)


def _lock_out(row: User, decision: Decision) -> str:
    staff.lock_out(row)
    return "Their password and their sessions have ended."


LOCK_OUT = ReasonedAction(
    name="lock_out",
    label="Lock out",
    permission="users.manage_staff",
    effect=lambda row: (
        "Their password stops working and their sessions end at once. To let them in again, reset the password."
    ),
    run=_lock_out,
    applies_to=lambda row: row.is_staff and row.has_usable_password(),
)


def _save_account(row: Any, values: Values) -> User:
    is_new = row.pk is None
    if is_new:
        row.is_staff = True
        row.set_unusable_password()
    row.full_clean(exclude=["password"])
    row.save()
    if is_new:
        second_factors.offer_phone(row)
    return row  # type: ignore[no-any-return]


SAVE_STAFF = form_kind(
    name="save_staff",
    title="Add or change a staff account",
    model=User,
    asks="users.manage_staff",
    decides="users.decide_staff",
    save=_save_account,
    after=lambda approval, person: "" if approval.object_id else staff.invite(approval, person),
)


def as_address(term: str) -> str | None:
    """Return the searched text as an address, so that the search uses the column's own index."""
    try:
        return checksum(term)
    except ValueError:
        return None


@admin.register(SignInSession)
class SignInSessionAdmin(ReasonedActions, ReadOnlyAdmin):
    """Sign-ins with their time and controller, and the action that ends a session."""

    list_display = ("user", "controller_address", "created_at", "refreshed_at", "expires_at", "revoked_at")
    list_filter = ("revoked_reason",)
    list_select_related = ("user",)
    search_fields = ("controller_address",)
    search_help_text = "A profile: name#1234 or a part of its address; or the whole address of a controller."
    ordering = ("-created_at",)
    staff_actions = (END_SESSION,)

    def find_rows(self, rows: QuerySet[SignInSession], term: str) -> QuerySet[SignInSession] | None:
        by_profile = Q(user__in=people_like(term))
        address = as_address(term)
        return rows.filter(by_profile | Q(controller_address=address) if address else by_profile)


@admin.register(AccountDeletion)
class AccountDeletionAdmin(ReadOnlyAdmin):
    """Account deletions, their progress and the reasons why they wait. They need no action by staff."""

    list_display = ("user", "status", "waits_for", "requested_at", "billing_ended_at", "erased_at")
    list_filter = ("status",)
    list_select_related = ("user",)
    ordering = ("-requested_at",)


@admin.register(Phone)
class PhoneAdmin(ReadOnlyAdmin):
    """Second factors of staff; an action on the user's page requests another."""

    list_display = ("user", "name", "confirmed", "created_at", "last_used_at")
    list_filter = ("confirmed",)
    list_select_related = ("user",)
    ordering = ("-pk",)
    # The key is not among the fields, because with it a reader could log in as the user.
    fields = ("user", "name", "confirmed", "created_at", "last_used_at")


def _distrust(row: TrustedImplementation, decision: Decision) -> str:
    TrustedImplementation.objects.filter(pk=row.pk).update(is_active=False)
    return "It is no longer trusted."


DISTRUST = ReasonedAction(
    name="distrust",
    label="Stop trusting",
    permission="users.change_trustedimplementation",
    effect=lambda row: (
        "Profiles that run it can no longer sign in or relay. Trusting it again needs approval."
    ),
    run=_distrust,
    applies_to=lambda row: row.is_active,
)


@admin.register(TrustedImplementation)
class TrustedImplementationAdmin(ApprovedForm, ReasonedActions, StaffAdmin[TrustedImplementation]):
    """Contract code that profiles may run. Trusting code needs a second person; revoking trust does not."""

    saves = trusted_code.SAVE
    staff_actions = (DISTRUST,)
    list_display = ("name", "kind", "address", "code_hash", "is_active")
    list_filter = ("kind", "is_active")
    ordering = ("kind", "name")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # The row stays as a record of trusted code.
