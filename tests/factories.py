"""Rows that tests of several packages need."""

import secrets
from typing import Any

from factory.declarations import LazyFunction
from factory.django import DjangoModelFactory

from gateway.common.fields import checksum
from relay.models import Relayer
from users.models import User


def random_address() -> str:
    """Return a fresh 20-byte address in its EIP-55 form."""
    return checksum("0x" + secrets.token_hex(20))


class UserFactory(DjangoModelFactory[User]):
    """A wallet user with a random profile, or staff by `UserFactory.create(profile_address=None, is_staff=True)`."""

    class Meta:
        model = User

    @classmethod
    def _adjust_kwargs(cls, **kwargs: Any) -> dict[str, Any]:
        kwargs.setdefault("profile_address", random_address())
        kwargs.setdefault("username", kwargs["profile_address"] or f"staff-{secrets.token_hex(6)}")
        return kwargs


class RelayerFactory(DjangoModelFactory[Relayer]):
    """A relayer that has sent nothing."""

    class Meta:
        model = Relayer

    address = LazyFunction(random_address)  # type: ignore[no-untyped-call]
    next_account_nonce = 0
    mined_account_nonce = 0
