"""
The people who act for a sponsor.

The sponsor's row is the lock of its members, so that two owners who remove each other at once leave one.
"""

from django.db import transaction

from sponsors.errors import LastOwner, MemberUnknown
from sponsors.models import Member, Sponsor
from users.models import User


@transaction.atomic
def put(*, sponsor: Sponsor, profile_address: str, role: str) -> Member:
    """
    Make the owner of a profile a member with this role, or change the role of a member.

    Raises:
        MemberUnknown: no open account has the address.
        LastOwner: the member is the only owner, and would be none.
    """
    _lock(sponsor)
    user = User.objects.filter(profile_address=profile_address, is_active=True).first()
    if user is None:
        raise MemberUnknown("No account has this address. The person signs in here once before.")
    if role != Member.Role.OWNER:
        _require_other_owner(sponsor, user.pk)
    member, _ = Member.objects.update_or_create(sponsor=sponsor, user=user, defaults={"role": role})
    return member


@transaction.atomic
def remove(*, sponsor: Sponsor, profile_address: str) -> None:
    """
    End a membership at once.

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


def forget(user: User) -> None:
    """Delete the memberships of a person who leaves, also that of a last owner."""
    Member.objects.filter(user=user).delete()


def _lock(sponsor: Sponsor) -> None:
    Sponsor.objects.select_for_update(no_key=True).get(pk=sponsor.pk)


def _require_other_owner(sponsor: Sponsor, user_id: int) -> None:
    owners = set(
        Member.objects.filter(sponsor=sponsor, role=Member.Role.OWNER).values_list("user_id", flat=True)
    )
    if owners == {user_id}:
        raise LastOwner("Make another member an owner first.")
