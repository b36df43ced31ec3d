"""Members of a sponsor who call its API."""

from typing import Any

from sponsors.models import Member, Sponsor
from tests.factories import UserFactory
from tests.relay.api.conftest import ApiResponse, Wallet, wallet_of
from users.models import User


def member_of(sponsor: Sponsor, role: str = "owner") -> User:
    """Return a new person who is a member of the sponsor."""
    user = UserFactory.create()
    Member.objects.create(sponsor=sponsor, user=user, role=role)
    return user


def call(user: User | None, method: str, path: str, **body: Any) -> ApiResponse:
    """Send a request as this person; JSON where there is a body."""
    wallet = wallet_of(user) if user else Wallet(None, "192.0.2.1")
    if method == "get":
        return wallet.send("get", path, data=body)
    options: dict[str, Any] = {"data": body, "content_type": "application/json"} if body else {}
    return wallet.send(method, path, **options)
