"""
Members without a profile: invited by e-mail, and signed in with a password and a code from an authenticator app.

The e-mail has a link, and the inviting owner is shown a code. The invited person needs both to choose a password
(`users.services.invitations`). The first sign-in confirms the phone. Such a user belongs to one sponsor only;
otherwise another sponsor's owner could invite the person again and take over the membership.
"""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from smtplib import SMTPException

from django.conf import settings
from django.contrib.auth import authenticate
from django.contrib.auth.hashers import make_password
from django.core.mail import EmailMessage
from django.db import transaction
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.crypto import salted_hmac

from gateway.staff import audit
from sponsors.errors import InvitationClosed, MailFailed, MailUnavailable, MemberSessionEnded, SignInRefused
from sponsors.models import Member, MemberSession, Sponsor
from sponsors.services import members
from users.models import Phone, User
from users.services import invitations, second_factors
from users.services.invitations import Outcome

# Distinguishes the token from access tokens and API keys.
PREFIX = "member_"
LIFETIME = timedelta(hours=12)
_BYTES, _NAME_BYTES = 32, 12


@dataclass(frozen=True, slots=True)
class Invited:
    """An invited member, with the code for the owner and the token in the e-mail's link; neither is shown again."""

    member: Member
    code: str
    token: str


@transaction.atomic
def invite(*, sponsor: Sponsor, email: str, role: str, actor: User) -> Invited:
    """
    Add the owner of an e-mail address as a member who must still choose a password, or invite a member again.

    A member who is invited again, for example after losing the phone, loses password, phone and sessions at once.

    Raises:
        MailUnavailable: the service sends no e-mails.
        LastOwner: the member is the only owner who can sign in.
    """
    if not settings.EMAIL_HOST:
        raise MailUnavailable("The operator of this service has set up no mail server.")
    members.lock(sponsor)
    member = Member.objects.select_related("user").filter(sponsor=sponsor, email=email).first()
    before = member.role if member else ""
    if member is None:
        name = f"member-{secrets.token_hex(_NAME_BYTES)}"
        person = User.objects.create(username=name, is_member=True, password=make_password(None))
        member = Member.objects.create(sponsor=sponsor, user=person, email=email, role=role)
    else:
        members.require_other_owner(sponsor, member.user_id)
        members.shut_out(member.user)
        # Takes the lock that a sign-in holds while it opens a session.
        Member.objects.filter(pk=member.pk).update(role=role)
        MemberSession.objects.filter(member=member).delete()
    code = invitations.prepare(member.user, approved_by=actor)
    token = invitations.link_for_member(member.user)
    changes = {f"role of person {member.user_id}": (before, role)}
    audit.record(actor=actor, row=sponsor, action="invite a member", changes=changes)
    return Invited(member, code, token)


def send(invited: Invited, *, language: str) -> None:
    """
    Send the link to the invited person; call this outside any transaction.

    Raises:
        MailFailed: the mail server did not accept the e-mail; the owner must invite the person again.
    """
    context = {
        "name": settings.BRAND_NAME,
        "sponsor": invited.member.sponsor.name,
        "link": f"{settings.PUBLIC_URL}/sponsor#invitation/{invited.token}",
        "hours": settings.STAFF_ENROLMENT_HOURS,
    }
    with translation.override(language):
        subject, _, body = render_to_string("portal/invitation.txt", context).strip().partition("\n")
    headers = {"Auto-Submitted": "auto-generated"}
    mail = EmailMessage(subject, body.strip() + "\n", None, [str(invited.member.email)], headers=headers)
    try:
        mail.send()
    except (OSError, SMTPException) as failure:
        raise MailFailed("The e-mail could not be sent. Invite the person again later.") from failure


def accept(*, token: str, code: str, password: str) -> tuple[Member, Phone]:
    """
    Set the invited person's password; return the phone to set up, whose seed is shown only now.

    Raises:
        InvitationClosed: link or code is wrong, used, or expired. Several wrong codes close the link.
    """
    invitation = invitations.invited_by(token, is_member=True)
    # `invitations.accept` commits its own transaction, so that a wrong code is counted even if this function raises.
    if (
        invitation is None
        or invitations.accept(token=token, code=code, password=password, is_member=True)
        is not Outcome.ACCEPTED
    ):
        raise InvitationClosed("The link or the code is wrong, has been used, or is too old.")
    member = Member.objects.select_related("sponsor").get(user=invitation.user)
    return member, second_factors.offer_phone(invitation.user)


def sign_in(
    *, request: HttpRequest, sponsor: str, email: str, password: str, number: str, now: datetime
) -> tuple[MemberSession, str]:
    """
    Open a session for the member with this e-mail address, password and code; return it with its token.

    Only the token's hash is stored. The authentication backends count failures by name and network, as for staff, and
    the phone device throttles wrong codes. The first sign-in confirms the phone.

    Raises:
        SignInRefused: the address, the password or the code is wrong; the error does not reveal which.
    """
    member = (
        Member.objects.select_related("user", "sponsor").filter(sponsor__slug=sponsor, email=email).first()
    )
    name = member.user.username if member else _unknown_member(sponsor, email)
    person = authenticate(request=request, username=name, password=password)
    if member is None or person is None or not _proves(member.user, number, now):
        raise SignInRefused("The sponsor, the address, the password or the code is wrong.")
    text = PREFIX + secrets.token_urlsafe(_BYTES)
    with transaction.atomic():
        # Removals and new invitations take the same lock. If one came first, the member or the password is gone by now.
        is_member = Member.objects.select_for_update(no_key=True).filter(pk=member.pk).first() is not None
        if not is_member or not User.objects.filter(pk=person.pk, password=person.password).exists():
            raise SignInRefused("The sponsor, the address, the password or the code is wrong.")
        MemberSession.objects.filter(member=member, expires_at__lte=now).delete()
        session = MemberSession.objects.create(
            member=member, token_hash=_hash(text), created_at=now, expires_at=now + LIFETIME
        )
    return session, text


def session_of(text: str, *, now: datetime) -> MemberSession:
    """
    Return the session of a token, with its member.

    Raises:
        MemberSessionEnded: the session has ended, or its member was removed.
    """
    rows = MemberSession.objects.select_related("member__user", "member__sponsor__credit_account")
    session = rows.filter(
        token_hash=_hash(text), expires_at__gt=now, member__user__is_active=True, member__user__is_member=True
    ).first()
    if session is None:
        raise MemberSessionEnded("Sign in again.")
    return session


def _proves(person: User, number: str, now: datetime) -> bool:
    if Phone.objects.filter(user=person, confirmed=True).exists():
        return second_factors.proves(person, token=number)
    return second_factors.prove_offered(person, number=number, now=now) is not None


def _unknown_member(sponsor: str, email: str) -> str:
    """Return a username that no user has, stable for each unknown address, so that its failures are counted too."""
    return (
        "unknown-" + salted_hmac("sponsors.member", f"{sponsor}:{email}", algorithm="sha256").hexdigest()[:24]
    )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
