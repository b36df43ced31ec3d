"""
The people who act for a sponsor.

Changes of members lock the sponsor's row, so that two owners cannot remove each other at the same time. What a member
has made ends with the membership: API keys, open invitations, and what apps register with `at_end`.
"""

from collections.abc import Callable
from datetime import datetime

from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.db import transaction
from django.db.models import QuerySet

from gateway.common import clock
from gateway.staff import audit
from sponsors.errors import LastOwner, MemberUnknown
from sponsors.models import Member, Sponsor
from sponsors.services import keys
from users.models import Invitation, Phone, User

_AtEnd = Callable[[Sponsor, User, datetime], object]
_at_end: dict[str, _AtEnd] = {}


def at_end(app: str, end: _AtEnd) -> None:
    """Register what an app does, in the same transaction, when a person's membership of a sponsor ends."""
    _at_end[app] = end


@transaction.atomic
def put(*, sponsor: Sponsor, profile_address: str, role: str, actor: User | None = None) -> Member:
    """
    Add the account of a profile as a member with this role, or change the member's role.

    Pass the member who acts as `actor` for the audit log; the admin records staff by itself.

    Raises:
        MemberUnknown: no open account has the address.
        LastOwner: the member is the only owner and would get another role.
    """
    lock(sponsor)
    user = User.objects.filter(profile_address=profile_address, is_active=True).first()
    if user is None:
        raise MemberUnknown("No account has this address. The person must sign in here once before.")
    if role != Member.Role.OWNER:
        require_other_owner(sponsor, user.pk)
    before = Member.objects.filter(sponsor=sponsor, user=user).values_list("role", flat=True).first()
    member, _ = Member.objects.update_or_create(sponsor=sponsor, user=user, defaults={"role": role})
    _record(actor, sponsor, user.pk, before or "", role)
    return member


@transaction.atomic
def change_role(*, member: Member, role: str, actor: User) -> None:
    """
    Give a member another role at once.

    Raises:
        LastOwner: the member is the only owner, and the new role is not owner.
    """
    lock(member.sponsor)
    if role != Member.Role.OWNER:
        require_other_owner(member.sponsor, member.user_id)
    Member.objects.filter(pk=member.pk).update(role=role)
    _record(actor, member.sponsor, member.user_id, member.role, role)


@transaction.atomic
def remove(*, member: Member, actor: User | None = None) -> None:
    """
    End a membership at once, with all that the member made and the sessions of a member without a profile; `actor` as
    in `put`.

    Raises:
        LastOwner: the member is the only owner.
    """
    lock(member.sponsor)
    require_other_owner(member.sponsor, member.user_id)
    if member.email is not None:
        shut_out(member.user)
        User.objects.filter(pk=member.user_id).update(is_active=False)
    _end(member, now=clock.now())
    _record(actor, member.sponsor, member.user_id, member.role, "")


def of_address(sponsor: Sponsor, profile_address: str) -> Member:
    """
    Return the member with this profile.

    Raises:
        MemberUnknown: no member has this address.
    """
    return _found(Member.objects.filter(sponsor=sponsor, user__profile_address=profile_address))


def of_number(sponsor: Sponsor, number: int) -> Member:
    """
    Return the member with this id.

    Raises:
        MemberUnknown: the sponsor has no such member.
    """
    return _found(Member.objects.filter(sponsor=sponsor, pk=number))


def _found(rows: QuerySet[Member]) -> Member:
    member = rows.select_related("sponsor", "user").first()
    if member is None:
        raise MemberUnknown("The sponsor has no such member.")
    return member


def shut_out(person: User) -> None:
    """Remove the password, phone and invitation of a member without a profile."""
    person.set_unusable_password()
    person.save(update_fields=["password"])
    Phone.objects.filter(user=person).delete()
    Invitation.objects.filter(user=person).delete()


def forget(user: User) -> None:
    """End the memberships of a person whose account is deleted, even as the last owner."""
    for member in Member.objects.filter(user=user).select_related("sponsor", "user"):
        _end(member, now=clock.now())


def _end(member: Member, *, now: datetime) -> None:
    keys.end_of_maker(sponsor=member.sponsor, user=member.user, now=now)
    invited = User.objects.filter(memberships__sponsor=member.sponsor, is_member=True)
    Invitation.objects.filter(user__in=invited, approved_by=member.user).delete()
    for end in _at_end.values():
        end(member.sponsor, member.user, now)
    Member.objects.filter(pk=member.pk).delete()


def _record(actor: User | None, sponsor: Sponsor, user_id: int, before: str, after: str) -> None:
    # The log has the user's id and not the address, because log entries are never erased.
    if actor is not None:
        changes = {f"role of person {user_id}": (before, after)}
        audit.record(actor=actor, row=sponsor, action="change a member", changes=changes)


def lock(sponsor: Sponsor) -> None:
    """Lock the sponsor's members until the transaction ends."""
    Sponsor.objects.select_for_update(no_key=True).get(pk=sponsor.pk)


def require_other_owner(sponsor: Sponsor, user_id: int) -> None:
    """
    Refuse a change that would leave no owner who can sign in. The caller has called `lock`.

    Raises:
        LastOwner: the user is this owner.
    """
    owners = Member.objects.filter(sponsor=sponsor, role=Member.Role.OWNER).exclude(
        user__is_member=True, user__password__startswith=UNUSABLE_PASSWORD_PREFIX
    )
    if set(owners.values_list("user_id", flat=True)) == {user_id}:
        raise LastOwner("Make another member an owner first.")
