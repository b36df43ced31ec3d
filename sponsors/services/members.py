"""
The people who act for a sponsor.

Changes of members lock the sponsor's row, so that two owners who remove each other at the same time leave one.
"""

from django.db import transaction

from gateway.staff import audit
from sponsors.errors import LastOwner, MemberUnknown
from sponsors.models import Member, Sponsor
from users.models import User


@transaction.atomic
def put(*, sponsor: Sponsor, profile_address: str, role: str, actor: User | None = None) -> Member:
    """
    Add the account of a profile as a member with this role, or change the member's role.

    The log of staff names the `actor`, a member; the log names staff by itself.

    Raises:
        MemberUnknown: no open account has the address.
        LastOwner: the member is the only owner and would get another role.
    """
    _lock(sponsor)
    user = User.objects.filter(profile_address=profile_address, is_active=True).first()
    if user is None:
        raise MemberUnknown("No account has this address. The person must sign in here once before.")
    if role != Member.Role.OWNER:
        _require_other_owner(sponsor, user.pk)
    before = Member.objects.filter(sponsor=sponsor, user=user).values_list("role", flat=True).first()
    member, _ = Member.objects.update_or_create(sponsor=sponsor, user=user, defaults={"role": role})
    _record(actor, sponsor, user.pk, before or "", role)
    return member


@transaction.atomic
def remove(*, sponsor: Sponsor, profile_address: str, actor: User | None = None) -> None:
    """
    End a membership at once; `actor` as in `put`.

    Raises:
        MemberUnknown: no member has this address.
        LastOwner: the member is the only owner.
    """
    _lock(sponsor)
    member = Member.objects.filter(sponsor=sponsor, user__profile_address=profile_address).first()
    if member is None:
        raise MemberUnknown("No member has this address.")
    _require_other_owner(sponsor, member.user_id)
    member.delete()
    _record(actor, sponsor, member.user_id, member.role, "")


def forget(user: User) -> None:
    """Delete the memberships of a person whose account is deleted, even as the last owner."""
    Member.objects.filter(user=user).delete()


def _record(actor: User | None, sponsor: Sponsor, user_id: int, before: str, after: str) -> None:
    # By number, because nothing erases an address from the log.
    if actor is not None:
        changes = {f"role of person {user_id}": (before, after)}
        audit.record(actor=actor, row=sponsor, action="change a member", changes=changes)


def _lock(sponsor: Sponsor) -> None:
    Sponsor.objects.select_for_update(no_key=True).get(pk=sponsor.pk)


def _require_other_owner(sponsor: Sponsor, user_id: int) -> None:
    owners = set(
        Member.objects.filter(sponsor=sponsor, role=Member.Role.OWNER).values_list("user_id", flat=True)
    )
    if owners == {user_id}:
        raise LastOwner("Make another member an owner first.")
