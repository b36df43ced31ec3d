"""The user of a profile, created at the first verified sign-in."""

from django.contrib.auth.hashers import make_password
from django.db import transaction

from users.errors import AccountDeleted, AccountInactive
from users.models import AccountDeletion, User, user_created
from users.queries import CLOSED, require_not_banned


def user_of_profile(*, profile_address: str) -> User:
    """
    Return the profile's user, created together with its credit account on the first call.

    Simultaneous first calls get the same user.

    Raises:
        AccountDeleted: a previous account of the profile is still being erased.
        AccountInactive, AccountBanned: support has closed or banned the account.
    """
    user = User.objects.filter(profile_address=profile_address).first() or _create(profile_address)
    require_not_banned(user)
    if not user.is_active:
        if AccountDeletion.objects.filter(user=user).exists():
            raise AccountDeleted("The account of this profile is being deleted. Sign in again in an hour.")
        raise AccountInactive(CLOSED)
    return user


def _create(profile_address: str) -> User:
    # No usable password, so that a profile's user can never log in to the admin.
    defaults = {"username": profile_address, "password": make_password(None)}
    with transaction.atomic():
        user, created = User.objects.get_or_create(profile_address=profile_address, defaults=defaults)
        if created:
            user_created.send(sender=User, user=user)
    return user
