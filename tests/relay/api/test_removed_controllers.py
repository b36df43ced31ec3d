"""
A controller that was removed at home, and is alive on a copy, tries every endpoint of the API's description.

It sends its own signatures wherever one is wanted: without a token, with a forged one, and with that of an account of
its own.
"""

import json
import secrets
from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric import ec
from django.apps import apps
from django.db.models import Model
from django.test import Client
from django.utils import timezone

from devstack.world.permissions import ALL_PERMISSIONS
from devstack.world.profiles import Profile
from relay.models import RelayTransaction
from tests.docs.pages import DOCS
from tests.examples import resolved
from tests.fakes.profiles import Controller, address_of, random_key
from tests.relay.api.conftest import execute_body, network_address, signed_in
from tests.relay.signing import QUOTA_DIALECTS
from tests.relay.two_chains import ForeignChain
from tests.sponsors.sponsorships import make_policy, make_sponsor
from tests.users.auth_client import CALLER, personal_sign
from tests.users.forged_tokens import forged_token
from users.models import SignInSession, User
from users.services import sign_in

pytestmark = pytest.mark.django_db
_DESCRIPTION = yaml.safe_load((DOCS / "openapi.yaml").read_text())
_METHODS = ("get", "post", "put", "delete")
# What anybody may read.
_PUBLIC = {"/api/service", "/.well-known/jwks.json", "/.well-known/ledger-roots", "/api/auth/nonce"}
_Body = dict[str, Any]


def _rows_of(user: User) -> dict[str, list[Any]]:
    """Return every row that belongs to the account, and the account itself."""
    rows: dict[str, list[Any]] = {"user": list(User.objects.filter(pk=user.pk).values())}
    for model in apps.get_models():
        for field in model._meta.concrete_fields:
            if field.related_model is User:
                rows[f"{model._meta.label} {field.name}"] = _rows(model, {field.name: user})
    return rows


def _rows(model: type[Model], condition: dict[str, Any]) -> list[Any]:
    return list(model._default_manager.filter(**condition).order_by("pk").values())


class Attacker:
    """The holder of a key that home removed."""

    def __init__(self, foreign: ForeignChain, profile: Profile, victims_hash: str) -> None:
        self.key, self.foreign, self.profile = random_key(), foreign, profile
        self.controller = Controller(private_key=self.key)
        self.hash = victims_hash
        sponsor = make_sponsor()
        make_policy(sponsor, chain_id=foreign.id)
        self.sponsor = sponsor.slug
        foreign.copy(profile, **{address_of(self.key): int(ALL_PERMISSIONS)})

    def body(self, path: str, schema: Any) -> _Body:
        """Return the members of the schema, signed by the key."""
        call = self.foreign.sign(self.profile, private_key=self.key, relay_nonce=0)
        members = execute_body(call) | {
            "address": self.profile.profile_address,
            "profile": self.profile.profile_address,
            "universalProfileAddress": self.profile.profile_address,
            "controller": self.controller.address,
            "chainId": self.foreign.id,
            "chainIds": [self.foreign.id],
            "transactionHash": self.hash,
            "lsp6ControllerAddress": [self.controller.address],
            "sponsor": self.sponsor,
            "subscriptionCost": 2_500,
            "cancelImmediately": True,
            "email": "thief@thief.example",
            "refresh": secrets.token_urlsafe(32),
            "role": "owner",
        }
        members |= self._of_sign_in() if path.endswith("verify") else self._of_quota()
        return {name: members[name] for name in schema.get("properties", {}) if name in members}

    def _of_sign_in(self) -> _Body:
        challenge = sign_in.issue_challenge(
            profile_address=self.profile.profile_address, client=CALLER, now=timezone.now()
        )
        signature = personal_sign(self.controller, challenge.message)
        return {"nonce": challenge.nonce, "signature": "0x" + signature.hex()}

    def _of_quota(self) -> _Body:
        sign, timestamp = QUOTA_DIALECTS[next(iter(QUOTA_DIALECTS))], int(timezone.now().timestamp())
        signature = sign(self.profile.profile_address, timestamp, self.key)
        return {"timestamp": timestamp, "signature": "0x" + signature.hex()}

    def path(self, path: str) -> str:
        """Return the path with its parameters, which name what is the victim's where they can."""
        of_path = {
            "chain_id": str(self.foreign.id),
            "name": self.sponsor,
            "address": self.profile.profile_address,
            "transaction_hash": self.hash,
            "session_id": str(uuid4()),
            "number": "1",
            "key": "1",
            "policy": "1",
            "invoice_id": "1",
            "endpoint_id": str(uuid4()),
            "message_id": str(uuid4()),
            "network": "adgem",
            "token": "none",
        }
        for name, value in of_path.items():
            path = path.replace("{" + name + "}", value)
        return path


def _operations() -> list[tuple[str, str, Any]]:
    return [
        (method, path, operation)
        for path, operations in _DESCRIPTION["paths"].items()
        for method, operation in operations.items()
        if method in _METHODS
    ]


def _schema_of(operation: Any) -> Any:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return resolved(_DESCRIPTION, content.get("schema", {}))


def _send(method: str, path: str, body: _Body, token: str | None) -> tuple[int, str]:
    client = Client(raise_request_exception=False, REMOTE_ADDR=network_address())
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    data = json.dumps(body) if method != "get" else None
    response = getattr(client, method)(path, data, content_type="application/json", headers=headers)
    content = b"".join(response.streaming_content) if response.streaming else response.content
    return response.status_code, content.decode()


def _forged(user: User, attacker: Attacker) -> str:
    """Return a token of the victim that the attacker signed with a key of its own."""
    return forged_token(
        key=ec.generate_private_key(ec.SECP256R1()),
        sub=str(user.pk),
        address=str(user.profile_address),
        ctl=attacker.controller.address,
    )


@pytest.mark.parametrize("pretends", ["nobody", "the victim", "itself"])
def test_a_removed_controller_gets_nothing_from_any_endpoint(
    user: User,
    profile: Profile,
    foreign: ForeignChain,
    accept: Callable[..., RelayTransaction],
    create_profile: Callable[..., Profile],
    open_account: Callable[..., User],
    pretends: str,
) -> None:
    attacker = Attacker(foreign, profile, accept().transaction_hash)
    token = None
    if pretends == "the victim":
        token = _forged(user, attacker)
    elif pretends == "itself":
        own = create_profile()
        open_account(own)
        token = signed_in(own).token
    before, codes = _rows_of(user), Counter[str]()
    for method, path, operation in _operations():
        body = attacker.body(path, _schema_of(operation))
        status, text = _send(method, attacker.path(path), body, token)
        where = f"{method} {path}: {status} {text[:300]}"
        assert status != 500, where
        needs_token = bool(operation.get("security"))
        if status < 300 and path not in _PUBLIC:
            # Only an account may be used that is the attacker's own, and nothing of the victim is in the response.
            assert pretends == "itself", where
            assert needs_token, where
            assert profile.profile_address.lower() not in text.lower(), where
        if status >= 400:
            codes[json.loads(text)["code"]] += 1
        assert _rows_of(user) == before, where
    assert not foreign.pending
    assert not SignInSession.objects.filter(user=user).exists()
    assert codes["home-permission-missing"] >= 1, codes
    assert codes["quota-signature-invalid"] >= 1, codes
    if pretends != "itself":
        assert codes["not-authenticated"] + codes["access-token-signature-invalid"] > 60, codes
