"""
Invitations: how a member of staff gets a password that no other person has seen.

An approval creates an invitation, for a new account or to replace a lost password. The approver is shown a code, and a
colleague who manages staff creates a link. The person needs both, so neither of the two can take over the account.
"""

import hashlib
import secrets
from datetime import timedelta
from enum import Enum

from django.conf import settings
from django.contrib.auth.hashers import check_password, make_password
from django.db import transaction
from django.db.models.functions import Now

from gateway.common.errors import PermissionDenied
from gateway.staff import audit
from users.models import Invitation, User

_LINK_BYTES, _CODE_DIGITS = 32, 8


class Outcome(Enum):
    """The outcome of submitting a code and a new password."""

    ACCEPTED = "accepted"
    WRONG_CODE = "wrong code"
    CLOSED = "closed"


def prepare(person: User, *, approved_by: User) -> str:
    """Invite the person, also again; return the code, which is shown only now. Joins the caller's transaction."""
    code = f"{secrets.randbelow(10**_CODE_DIGITS):0{_CODE_DIGITS}}"
    Invitation.objects.update_or_create(
        user=person,
        defaults={
            "link_hash": "",
            "code_hash": make_password(code),
            "approved_by": approved_by,
            "failures": 0,
            "expires_at": Now() + timedelta(hours=settings.STAFF_ENROLMENT_HOURS),
            "used_at": None,
        },
    )
    return f"{code[:4]}-{code[4:]}"


def open_invitation(person: User) -> Invitation | None:
    return Invitation.objects.open().filter(user=person).select_related("approved_by").first()


def make_link(person: User, *, actor: User) -> str:
    """
    Return the token of a new link, which is shown only now and replaces an earlier link.

    Raises:
        PermissionDenied: the person is not invited, or `actor` knows the code.
    """
    others = Invitation.objects.open().filter(user=person).exclude(approved_by=actor)
    token = secrets.token_urlsafe(_LINK_BYTES)
    if not others.update(link_hash=_hash(token)):
        raise PermissionDenied("There is no open invitation, or you approved it and have its code.")
    return token


def link_for_member(person: User) -> str:
    """
    Return the token of the link for a member without a profile, which is e-mailed to the person.

    Neither staff nor the owner who has the code can read that e-mail.
    """
    token = secrets.token_urlsafe(_LINK_BYTES)
    Invitation.objects.filter(user=person, user__is_member=True).update(link_hash=_hash(token))
    return token


def invited_by(token: str, *, is_member: bool = False) -> Invitation | None:
    """Return the open invitation of this link, for staff or, with `is_member`, for a member without a profile."""
    rows = Invitation.objects.open(is_member=is_member)
    return rows.filter(link_hash=_hash(token)).select_related("user").first()


@transaction.atomic
def accept(*, token: str, code: str, password: str, is_member: bool = False) -> Outcome:
    """Set the invited person's password, once. Wrong codes are counted, and several of them close the invitation."""
    rows = Invitation.objects.open(is_member=is_member).select_for_update(of=("self",)).select_related("user")
    invitation = rows.filter(link_hash=_hash(token)).first()
    if invitation is None:
        return Outcome.CLOSED
    typed = "".join(character for character in code if character.isdecimal())
    if not check_password(typed, invitation.code_hash):
        invitation.failures += 1
        invitation.save(update_fields=["failures"])
        return Outcome.WRONG_CODE
    person = invitation.user
    person.set_password(password)
    person.save(update_fields=["password"])
    Invitation.objects.filter(pk=invitation.pk).update(used_at=Now())
    audit.record(actor=person, row=person, action="choose a password")
    return Outcome.ACCEPTED


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
