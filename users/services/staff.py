"""
Members of staff: the first two, and new passwords and second factors, which take approval.

Two people are needed before anything can be approved. `begin` makes them, at a shell and only while they are missing;
from then on accounts and roles are asked for in the admin. `reset_only_one` lets one of them in again whom nobody else
can help.
"""

import secrets
from typing import NamedTuple

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import Q, QuerySet
from django_otp.plugins.otp_totp.models import TOTPDevice, default_key

from gateway.staff import approval_kinds, approvals, audit
from gateway.staff.approval_kinds import Done, Kind
from gateway.staff.models import ApprovalPool, ApprovalRequest
from users.errors import StaffStarted
from users.models import User
from users.services import second_factors

# Each asks for what the other decides, staff accounts among it.
FIRST_ROLES = ("operations", "finance")
_PASSWORD_BYTES = 18


class Access(NamedTuple):
    """What a member of staff logs in with; told once."""

    password: str
    key: str


@transaction.atomic
def begin(*, username: str, role: str) -> Access:
    """
    Make one of the first two members of staff, one for each of `FIRST_ROLES`.

    Raises:
        StaffStarted: there are two already, or somebody has the role.
    """
    active = _lock_active()
    if active.count() >= len(FIRST_ROLES):
        raise StaffStarted(
            "There are two members of staff. They ask for and approve further ones in the admin."
        )
    if active.filter(groups__name=role).exists() or role not in FIRST_ROLES:
        raise StaffStarted(
            "The first two are one of operations and one of finance, so that each can approve."
        )
    access = Access(secrets.token_urlsafe(_PASSWORD_BYTES), default_key())
    person = User.objects.create_user(username, password=access.password, is_staff=True)
    person.groups.add(Group.objects.get(name=role))
    TOTPDevice.objects.create(user=person, name="phone", key=access.key)
    audit.record(actor=person, row=person, action="begin staff", changes={"role": ("", role)})
    return access


@transaction.atomic
def reset_only_one(*, username: str, role: str) -> str:
    """
    Return a new password for the only one of `role` among staff, who sets up a phone at the next login.

    That is for somebody who can no longer log in, and without whom nobody could ask for a reset or approve it.

    Raises:
        StaffStarted: nobody of that name has the role, or others can ask for this and approve it.
    """
    active = _lock_active()
    person = active.filter(username=username, groups__name=role).first()
    if person is None or role not in FIRST_ROLES:
        raise StaffStarted(f"No active member of staff is called {username} and has the role {role}.")
    if active.exclude(pk=person.pk).filter(Q(groups__name=role) | Q(is_superuser=True)).exists():
        raise StaffStarted(
            "Somebody else has this role, or is a superuser. Reset the password in the admin, by two people."
        )
    password = secrets.token_urlsafe(_PASSWORD_BYTES)
    person.set_password(password)
    person.save(update_fields=["password"])
    second_factors.reset(person)
    audit.record(actor=person, row=person, action="reset at a shell", changes={"role": ("", role)})
    return password


def _lock_active() -> QuerySet[User]:
    """Return who is active; of two shells at once, the second sees what the first one did."""
    ApprovalPool.objects.bulk_create([ApprovalPool(name="staff")], ignore_conflicts=True)
    ApprovalPool.objects.select_for_update().get(name="staff")
    return User.objects.filter(is_staff=True, is_active=True)


def request_password(*, person: User, actor: User, reason: str, key: str) -> tuple[ApprovalRequest, str]:
    """
    Ask for a new password of a member of staff; return it as well, since only its hash is kept.

    Raises:
        PermissionDenied, ReasonRequired, RequestConflict: see `approvals.ask`.
    """
    password = secrets.token_urlsafe(_PASSWORD_BYTES)
    approval = _ask(PASSWORD, person, actor, reason, key, {"password": make_password(password)}, "password")
    return approval, password


def request_second_factor(*, person: User, actor: User, reason: str, key: str) -> ApprovalRequest:
    """
    Ask that a member of staff sets up a new second factor at the next login, and loses the old one.

    Raises:
        PermissionDenied, ReasonRequired, RequestConflict: see `approvals.ask`.
    """
    return _ask(SECOND_FACTOR, person, actor, reason, key, {}, "second factor")


def _ask(
    kind: Kind, person: User, actor: User, reason: str, key: str, payload: dict[str, str], what: str
) -> ApprovalRequest:
    return approvals.ask(
        kind=kind,
        actor=actor,
        reason=reason,
        key=key,
        row=person,
        payload=payload,
        changes={what: ("", "a new one")},
    )


def _set_password(approval: ApprovalRequest) -> Done:
    person = User.objects.get(pk=approval.object_id)
    person.password = approval.payload["password"]
    person.save(update_fields=["password"])
    return Done("The new password is valid.", person)


def _set_second_factor(approval: ApprovalRequest) -> Done:
    person = User.objects.get(pk=approval.object_id)
    second_factors.reset(person)
    return Done("The old second factor is gone. The next login with the password sets up a new one.", person)


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
