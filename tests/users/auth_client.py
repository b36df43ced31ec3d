"""What a wallet does to sign in, over HTTP and straight to the services."""

from dataclasses import dataclass
from typing import Any

from django.utils.timezone import now
from rest_framework.request import Request
from rest_framework.test import APIClient, APIRequestFactory

from gateway.chain.signatures import personal_sign_digest
from tests.fakes.profiles import Controller, Profile
from users.api.authentication import AccessTokenAuthentication
from users.models import User
from users.services import sign_in
from users.services.sessions import TokenPair
from users.tokens import AccessToken

CALLER = "somebody"


def personal_sign(controller: Controller, message: str) -> bytes:
    """Return the controller's `personal_sign` of a message."""
    return controller.sign(personal_sign_digest(message.encode()))


def signed_in(profile: Profile, controller: Controller | None = None) -> TokenPair:
    """Sign the profile in through the services."""
    challenge = sign_in.issue_challenge(profile_address=profile.profile_address, client=CALLER, now=now())
    signature = personal_sign(controller or profile.controller, challenge.message)
    return sign_in.sign_in(nonce=challenge.nonce, signature=signature, client=CALLER, now=now())


def authenticate(token: str) -> tuple[User, AccessToken]:
    """Return the user and the verified token of a request that carries this access token."""
    request = APIRequestFactory().get("/", HTTP_AUTHORIZATION=f"Bearer {token}")
    authenticated = AccessTokenAuthentication().authenticate(Request(request))
    assert authenticated is not None
    user, verified = authenticated
    assert isinstance(user, User)
    assert isinstance(verified, AccessToken)
    return user, verified


@dataclass
class Wallet:
    """A wallet app that holds a profile and talks to the API."""

    client: APIClient
    profile: Profile

    def ask_nonce(self, address: str | None = None) -> dict[str, Any]:
        """Ask for a challenge."""
        return self.post("nonce", address=address or self.profile.profile_address)

    def verify(self, *, controller: Controller | None = None) -> dict[str, Any]:
        """Ask for a challenge, sign it and send it back."""
        challenge = self.ask_nonce()
        signature = personal_sign(controller or self.profile.controller, challenge["message"])
        return self.post("verify", nonce=challenge["nonce"], signature="0x" + signature.hex())

    def refresh(self, token: str) -> dict[str, Any]:
        """Exchange a refresh token."""
        return self.post("refresh", refresh=token)

    def me(self, access: str) -> dict[str, Any]:
        """Ask who one is."""
        return self.read(self.client.get("/api/auth/me", HTTP_AUTHORIZATION=f"Bearer {access}"))

    def post(self, path: str, **body: Any) -> dict[str, Any]:
        """Post JSON and return the response."""
        return self.read(self.client.post(f"/api/auth/{path}", body, format="json"))

    @staticmethod
    def read(response: Any) -> dict[str, Any]:
        """Return the JSON of a response; problem documents carry their status themselves."""
        body: dict[str, Any] = response.json()
        return body
