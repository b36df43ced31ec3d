"""A wallet that calls the relay over HTTP, signed in as real ones are."""

import json
import secrets
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from devstack.world.profiles import Profile
from gateway.chain.lsp25 import RelayCall
from tests.factories import random_address
from tests.fakes.profiles import Controller
from tests.users.auth_client import CALLER, personal_sign
from users.models import User
from users.services import sessions
from users.services import sign_in as users_sign_in
from users.services.sign_in import sign_in


@dataclass
class ApiResponse:
    """What came back: the status, the JSON, the headers."""

    status: int
    body: dict[str, Any]
    headers: Any


@dataclass
class Wallet:
    """Posts JSON with a token, from a network address of its own."""

    token: str | None
    address: str

    def post(self, path: str, body: Any, **headers: str) -> ApiResponse:
        """Post a body, as it is where it is text already."""
        raw = body if isinstance(body, str | bytes) else json.dumps(body)
        return self.send("post", path, data=raw, content_type="application/json", headers=headers)

    def send(
        self, method: str, path: str, *, headers: dict[str, str] | None = None, **options: Any
    ) -> ApiResponse:
        """Send any request and read the response, which is JSON whatever happens."""
        if method == "post":
            # Left alone, Django's client posts a form.
            options = {"data": b"", "content_type": "application/json", **options}
        client = Client(raise_request_exception=False, REMOTE_ADDR=self.address)
        authorization = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        response = getattr(client, method)(path, headers={**authorization, **(headers or {})}, **options)
        return ApiResponse(response.status_code, response.json(), response.headers)


def execute_body(call: RelayCall, **changes: Any) -> dict[str, Any]:
    """Return the body of execute for a call, with changed members of `transaction`."""
    transaction: dict[str, Any] = {
        "abi": "0x" + call.payload.hex(),
        "signature": "0x" + call.signature.hex(),
        "nonce": call.relay_nonce,
    }
    if call.validity:
        transaction["validityTimestamps"] = hex(call.validity)
    return {"keyManagerAddress": call.key_manager, "transaction": {**transaction, **changes}}


def network_address() -> str:
    """Return an address that shares its rate limits with no other test."""
    return f"2001:db8:{secrets.token_hex(2)}:{secrets.token_hex(2)}::1"


def signed_in(profile: Profile, *, private_key: str = "") -> Wallet:
    """Sign the profile in with this key, by default its first controller's, and return its wallet."""
    challenge = users_sign_in.issue_challenge(
        profile_address=profile.profile_address, client=CALLER, now=timezone.now()
    )
    controller = Controller(private_key=private_key or profile.controller.private_key)
    signature = personal_sign(controller, challenge.message)
    pair = sign_in(nonce=challenge.nonce, signature=signature, client=CALLER, now=timezone.now())
    return Wallet(pair.access, network_address())


@pytest.fixture
def wallet(user: User, profile: Profile) -> Wallet:
    """The wallet of the profile, with an access token."""
    return signed_in(profile)


def wallet_of(user: User) -> Wallet:
    """Return the wallet of a user, with an access token of a session of its own."""
    pair = sessions.start(
        profile_address=str(user.profile_address), controller=random_address(), now=timezone.now()
    )
    return Wallet(pair.access, network_address())


@pytest.fixture
def anonymous() -> Wallet:
    """A caller without a token."""
    return Wallet(None, network_address())
