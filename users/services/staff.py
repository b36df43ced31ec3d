"""
Staff accounts: the first three, and resets of passwords and second factors, which need approval.

Approvals need two people, and only a third person, in support, may request credits. `begin` creates these three from
the command line, while they are missing; later accounts and roles are requested in the admin. `reset_only_one` resets
an account that no other person can reset.
"""

import secrets
from typing import NamedTuple

from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import Q, QuerySet

from gateway.staff import approval_kinds, approvals, audit
from gateway.staff.approval_kinds import Done, Kind
from gateway.staff.models import ApprovalPool, ApprovalRequest
from users.errors import StaffStarted
from users.models import Phone, User
from users.services import invitations, second_factors

# Each of these two roles decides the other's requests, including those for staff accounts. Support requests credits.
DECIDING_ROLES = ("operations", "finance")
FIRST_ROLES = (*DECIDING_ROLES, "support")
_PASSWORD_BYTES = 18


class Access(NamedTuple):
    """A staff account's credentials, shown once."""

    password: str
    key: str


@transaction.atomic
def begin(*, username: str, role: str) -> Access:
    """
    Create one of the first three staff accounts, one for each of `FIRST_ROLES`.

    Raises:
        StaffStarted: there are three already, or the role is taken.
    """
    active = _lock_active()
    if active.count() >= len(FIRST_ROLES):
        raise StaffStarted("There are three staff accounts. Request and approve further ones in the admin.")
    if active.filter(groups__name=role).exists() or role not in FIRST_ROLES:
        raise StaffStarted(
            "The first accounts are one each of operations and finance, who approve each other's requests, and support."
        )
    password = secrets.token_urlsafe(_PASSWORD_BYTES)
    person = User.objects.create_user(username, password=password, is_staff=True)
    person.groups.add(Group.objects.get(name=role))
    phone = Phone.objects.create(user=person, name="phone")
    audit.record(actor=person, row=person, action="begin staff", changes={"role": ("", role)})
    return Access(password, phone.shown_key)


@transaction.atomic
def reset_only_one(*, username: str, role: str) -> str:
    """
    Return a new password for the only staff account of `role`, which sets up a phone at the next login.

    This is for a person who cannot log in any more, and without whom no reset can be requested or approved.

    Raises:
        StaffStarted: no such account has the role, or others can request and approve the reset.
    """
    active = _lock_active()
    person = active.filter(username=username, groups__name=role).first()
    if person is None or role not in DECIDING_ROLES:
        raise StaffStarted(f"No active staff account is named {username} and has the role {role}.")
    if active.exclude(pk=person.pk).filter(Q(groups__name=role) | Q(is_superuser=True)).exists():
        raise StaffStarted(
            "Another account has this role or is a superuser. Reset the password in the admin, with two people."
        )
    password = secrets.token_urlsafe(_PASSWORD_BYTES)
    person.set_password(password)
    person.save(update_fields=["password"])
    second_factors.reset(person)
    audit.record(actor=person, row=person, action="reset at a shell", changes={"role": ("", role)})
    return password


def _lock_active() -> QuerySet[User]:
    """Return the active staff accounts, under a lock that serialises concurrent commands."""
    ApprovalPool.objects.bulk_create([ApprovalPool(name="staff")], ignore_conflicts=True)
    ApprovalPool.objects.select_for_update().get(name="staff")
    return User.objects.filter(is_staff=True, is_active=True)


def lock_out(person: User) -> None:
    """Remove the password of a member of staff, which also ends their sessions; a reset lets them log in again."""
    person.set_unusable_password()
    person.save(update_fields=["password"])


def request_password(*, person: User, actor: User, reason: str, key: str) -> ApprovalRequest:
    """
    Request an invitation by which a member of staff chooses a new password.

    Raises:
        PermissionDenied, ReasonRequired, RequestConflict: see `approvals.ask`.
    """
    return _ask(PASSWORD, person, actor, reason, key, "password")


def request_second_factor(*, person: User, actor: User, reason: str, key: str) -> ApprovalRequest:
    """
    Request that a member of staff loses the second factor and sets up a new one at the next login.

    Raises:
        PermissionDenied, ReasonRequired, RequestConflict: see `approvals.ask`.
    """
    return _ask(SECOND_FACTOR, person, actor, reason, key, "second factor")


def _ask(kind: Kind, person: User, actor: User, reason: str, key: str, what: str) -> ApprovalRequest:
    return approvals.ask(
        kind=kind,
        actor=actor,
        reason=reason,
        key=key,
        row=person,
        payload={},
        changes={what: ("", "a new one")},
    )


def invite(approval: ApprovalRequest, person: User) -> str:
    """Invite the person to choose a password, and return the text for the approver, with the code."""
    if approval.decided_by is None:
        raise ValueError("an invitation takes a second person")
    code = invitations.prepare(person, approved_by=approval.decided_by)
    return (
        f"Give {person} this code, which is shown only now: {code}. "
        "The link for it comes from those who manage staff, on the user's page."
    )


def _set_password(approval: ApprovalRequest) -> Done:
    person = User.objects.get(pk=approval.object_id)
    return Done(invite(approval, person), person)


def _set_second_factor(approval: ApprovalRequest) -> Done:
    person = User.objects.get(pk=approval.object_id)
    second_factors.reset(person)
    return Done("The second factor was removed. The next login sets up a new one.", person)


PASSWORD = approval_kinds.register(
    Kind(
        name="reset_password",
        title="Reset a password",
        asks="users.manage_staff",
        decides="users.decide_staff",
        carry_out=_set_password,
    )
)
SECOND_FACTOR = approval_kinds.register(
    Kind(
        name="reset_second_factor",
        title="Reset a second factor",
        asks="users.manage_staff",
        decides="users.decide_staff",
        carry_out=_set_second_factor,
    )
)
