"""Who: a person known by a Universal Profile, or a member of staff known by a password."""

from typing import ClassVar

from django.contrib.auth.models import AbstractUser

from gateway.common.fields import AddressField


class User(AbstractUser):
    """
    A wallet user has a profile, its checksummed address as username and no usable password.

    Staff have an ordinary username and password and no profile, so that neither
    can sign in the way the other does.
    """

    profile_address = AddressField(unique=True, null=True, blank=True)

    REQUIRED_FIELDS: ClassVar[list[str]] = []

    def __str__(self) -> str:
        return self.username
