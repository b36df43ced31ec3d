"""Accounts: the user of a profile, made when the profile is first vouched for."""

from django.contrib.auth.hashers import make_password
from django.db import transaction

from credits.services.ledger import open_account
from users.errors import AccountInactive
from users.models import User


def user_of_profile(*, profile_address: str) -> User:
    """
    Return the profile's user, made together with its credit account on the first call.

    Simultaneous first calls get the same user.

    Raises:
        AccountInactive: support has closed the account.
    """
    user = User.objects.filter(profile_address=profile_address).first() or _create(profile_address)
    if not user.is_active:
        raise AccountInactive("Support has closed this account.")
    return user


def _create(profile_address: str) -> User:
    # Without a usable password a wallet user never passes the staff's door.
    defaults = {"username": profile_address, "password": make_password(None)}
    with transaction.atomic():
        user, created = User.objects.get_or_create(profile_address=profile_address, defaults=defaults)
        if created:
            open_account(user=user)
    return user
