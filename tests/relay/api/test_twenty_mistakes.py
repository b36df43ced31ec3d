"""The typical mistakes of somebody who makes a wallet: each response says what to do next."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.utils import timezone
from eth_abi.abi import encode
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

from devstack.services.stack import Services
from devstack.world.profiles import Profile
from gateway.chain.lsp25 import RelayCall
from gateway.chain.signatures import personal_sign_digest
from relay.models import RelayTransaction
from relay.services.accepting import submission
from relay.services.accepting.limits import RefusedCalls
from tests.factories import random_address
from tests.relay.api.conftest import ApiResponse, Wallet, execute_body, network_address, signed_in
from tests.relay.api.test_quota import quota_body
from tests.relay.signing import execute_payload, sign_call, sign_digest, window
from users.models import User

pytestmark = pytest.mark.django_db
EXECUTE, PREPARE, QUOTA = "/api/relay/execute", "/api/relay/prepare", "/api/relay/quota"
NONCE, VERIFY = "/api/auth/nonce", "/api/auth/verify"
LSP15, STATUS = "/api/lsp15/execute", "/api/relay/transactionStatus"
SUBSCRIBE = "/api/payments/upsertSubscription"


@dataclass
class Beginner:
    """The maker of a wallet: a profile, a token, and what the service says to each mistake."""

    services: Services
    profile: Profile
    other: Profile
    wallet: Wallet

    @property
    def key(self) -> str:
        return str(self.profile.controller.private_key)

    @property
    def mistyped(self) -> str:
        address = to_checksum_address(self.profile.key_manager_address)
        return address[:-1] + ("0" if address[-1] != "0" else "1")

    def call(self, **fields: Any) -> RelayCall:
        return sign_call(services=self.services, profile=self.profile, **fields)

    def execute(self, call: RelayCall, **transaction: Any) -> ApiResponse:
        return self.wallet.post(EXECUTE, execute_body(call, **transaction))

    def execute_with(self, **members: Any) -> ApiResponse:
        return self.wallet.post(EXECUTE, {**execute_body(self.call()), **members})

    def execute_without(self, call: RelayCall, member: str) -> ApiResponse:
        body = execute_body(call)
        del body["transaction"][member]
        return self.wallet.post(EXECUTE, body)

    def execute_renamed(self, member: str, name: str) -> ApiResponse:
        body = execute_body(self.call(validity=window(0, 2**40)))
        holder = body if member in body else body["transaction"]
        holder[name] = holder.pop(member)
        return self.wallet.post(EXECUTE, body)

    def prepare(self, **transaction: Any) -> ApiResponse:
        return self.wallet.post(PREPARE, {"transaction": transaction})

    def quota(self, **members: Any) -> ApiResponse:
        return self.wallet.post(QUOTA, {**quota_body(self.profile), **members})

    def personally(self) -> ApiResponse:
        call = self.call()
        signature = sign_digest(self.key, personal_sign_digest(call.digest(self.services.chain_id)))
        return self.execute(call, signature="0x" + signature.hex())

    def with_header(self, header: str) -> ApiResponse:
        anonymous = Wallet(None, network_address())
        return anonymous.post(EXECUTE, execute_body(self.call()), Authorization=header)

    def nonce_for(self, address: str) -> ApiResponse:
        return Wallet(None, network_address()).post(NONCE, {"address": address})

    def verify(
        self, change: Callable[[str], str] = str, *, digest: Callable[[bytes], bytes] | None = None
    ) -> Any:
        """Sign the message after a change, by `personal_sign` or over another digest of it."""
        challenge = self.nonce_for(self.profile.profile_address).body
        message = change(challenge["message"]).encode()
        signature = sign_digest(self.key, (digest or personal_sign_digest)(message))
        body = {"nonce": challenge["nonce"], "signature": "0x" + signature.hex()}
        return Wallet(None, network_address()).post(VERIFY, body)

    def verify_twice(self) -> ApiResponse:
        challenge = self.nonce_for(self.profile.profile_address).body
        signature = sign_digest(self.key, personal_sign_digest(challenge["message"].encode()))
        body = {"nonce": challenge["nonce"], "signature": "0x" + signature.hex()}
        assert Wallet(None, network_address()).post(VERIFY, body).status == 200
        return Wallet(None, network_address()).post(VERIFY, body)


Attempt = Callable[[Beginner], ApiResponse]
_NOW = int(timezone.now().timestamp())
_TRANSFER = keccak(text="transfer(address,uint256)")[:4] + bytes(64)
_OF_KEY_MANAGER = keccak(text="execute(bytes)")[:4] + encode(["bytes"], [execute_payload("0x" + "11" * 20)])

# What was done: how, the code of the response, and the words in it that name the next action.
MISTAKES: dict[str, tuple[Attempt, str, str]] = {
    # Signing a call.
    "signed with a channel, sent without": (
        lambda b: b.execute(call := b.call(channel=3), nonce=call.relay_nonce % 2**128),
        "signature-channel-not-sent",
        r"Send the whole number that getNonce\(controller, channel\) returned, as text",
    ),
    "sent with a channel, signed without": (
        lambda b: b.execute(call := b.call(), nonce=5 << 128 | call.relay_nonce),
        "signature-channel-missing",
        "Sign with the whole number that getNonce",
    ),
    "the nonce of another channel": (
        lambda b: b.execute(b.call(channel=3), nonce=5 << 128),
        "signer-not-a-controller",
        "Sign the hash of this request, 0x[0-9a-f]{64}, .* nonce with its channel",
    ),
    "the chain id of another network": (
        lambda b: b.execute(b.call(chain_id=1)),
        "signature-other-chain",
        r"made with chain id 1\. Sign with chain id \d+",
    ),
    "personal_sign instead of EIP-191 version 0": (
        lambda b: b.personally(),
        "signature-personal-sign-digest",
        r"Sign the 32 bytes of the hash directly .* not with signMessage",
    ),
    "validity timestamps sent, not signed": (
        lambda b: b.execute(b.call(), validityTimestamps=hex(window(_NOW, _NOW + 3600))),
        "signature-validity-missing",
        "Sign with the same validityTimestamps that you send",
    ),
    "validity timestamps signed, not sent": (
        lambda b: b.execute_without(b.call(validity=window(0, _NOW + 3600)), "validityTimestamps"),
        "signer-not-a-controller",
        "Sign the hash of this request, 0x[0-9a-f]{64}, .* validity timestamps",
    ),
    "validity timestamps in milliseconds": (
        lambda b: b.execute(b.call(validity=window(_NOW * 1000, _NOW * 1000 + 3600))),
        "relay-call-not-yet-valid",
        "Sign seconds, not milliseconds",
    ),
    "validity timestamps that have ended": (
        lambda b: b.execute(b.call(validity=window(0, _NOW - 3600))),
        "relay-call-expired",
        "Sign a later end",
    ),
    "a call behind one that was not sent": (
        lambda b: b.execute(b.call(ahead=5)),
        "relay-nonce-gap",
        "Send the call with this nonce first",
    ),
    # The payload and the addresses.
    "the calldata of another contract": (
        lambda b: b.execute(b.call(payload=_TRANSFER)),
        "payload-function-not-supported",
        r"wrap its calldata in execute\(0, contract, value, calldata\)",
    ),
    "the calldata of the key manager": (
        lambda b: b.execute(b.call(payload=_OF_KEY_MANAGER)),
        "payload-function-not-supported",
        "setData, setDataBatch, execute, executeBatch and ownership functions",
    ),
    "no payload": (lambda b: b.execute(b.call(), abi="0x"), "invalid-request", "Send between 4 and"),
    "a mistyped digit": (
        lambda b: b.execute_with(keyManagerAddress=b.mistyped),
        "address-checksum",
        "Copy the address again",
    ),
    "the profile as key manager": (
        lambda b: b.execute_with(keyManagerAddress=b.profile.profile_address),
        "key-manager-not-found",
        r"Send the address that owner\(\) of the profile, 0x\w{40}, returns",
    ),
    "the key manager of another profile": (
        lambda b: b.execute_with(keyManagerAddress=b.other.key_manager_address),
        "key-manager-of-another-profile",
        "Send the key manager of this profile, or sign in with the other",
    ),
    "a token of another profile": (
        lambda b: signed_in(b.other).post(EXECUTE, execute_body(b.call())),
        "key-manager-of-another-profile",
        "Send the key manager of this profile, or sign in with the other",
    ),
    "no `to`": (lambda b: b.prepare(value="1"), "invalid-request", "Send either `abi` or `to`"),
    "a name instead of an address": (
        lambda b: b.prepare(to="alice.eth"),
        "invalid-request",
        "Send a 20-byte address as 0x and 40 hex digits",
    ),
    "an amount in LYX": (
        lambda b: b.prepare(to="0x" + "11" * 20, value="0.5"),
        "invalid-request",
        "Send a whole number as JSON integer, decimal text or 0x-hex text",
    ),
    "an amount as a fraction": (
        lambda b: b.prepare(to="0x" + "11" * 20, value=0.5),
        "invalid-request",
        "Send an integer below 2",
    ),
    "an unknown member": (
        lambda b: b.prepare(to="0x" + "11" * 20, gasLimit=5),
        "invalid-request",
        "There is no member of this name",
    ),
    "snake_case for a member that must be there": (
        lambda b: b.execute_renamed("keyManagerAddress", "key_manager_address"),
        "invalid-request",
        "The member is named `keyManagerAddress`",
    ),
    "snake_case for a member that may be missing": (
        lambda b: b.execute_renamed("validityTimestamps", "validity_timestamps"),
        "invalid-request",
        "The member is named `validityTimestamps`",
    ),
    "the signature as an object": (
        lambda b: b.execute(b.call(), signature={"r": "0x1", "s": "0x2", "v": 27}),
        "invalid-request",
        "Send the signature as one 0x-hex text",
    ),
    # Signing in.
    "the message with another domain": (
        lambda b: b.verify(lambda text: re.sub(r"^\S+", "evil.example", text)),
        "signature-not-by-controller",
        "Sign the message of /api/auth/nonce byte for byte",
    ),
    "the message with another URI": (
        lambda b: b.verify(lambda text: re.sub(r"URI: \S+", "URI: https://evil.example", text)),
        "signature-not-by-controller",
        "Sign the message of /api/auth/nonce byte for byte",
    ),
    "the message without the prefix of personal_sign": (
        lambda b: b.verify(digest=keccak),
        "signature-not-by-controller",
        "by personal_sign",
    ),
    "the message for another network": (
        lambda b: b.verify(lambda text: re.sub(r"Chain ID: \d+", "Chain ID: 42", text)),
        "signature-other-chain",
        "request a new nonce, and sign its message unchanged",
    ),
    "the same nonce twice": (lambda b: b.verify_twice(), "nonce-used", "Request a new one"),
    "the controller as the profile": (
        lambda b: b.nonce_for(b.profile.controller.address),
        "profile-not-deployed",
        "Send the address of the profile, not of its controller's key",
    ),
    "the key manager as the profile": (
        lambda b: b.nonce_for(b.profile.key_manager_address),
        "untrusted-code",
        "Send the address of the profile, not of its key manager",
    ),
    # The token and the request.
    "no token": (
        lambda b: Wallet(None, network_address()).post(EXECUTE, execute_body(b.call())),
        "not-authenticated",
        "Send the header Authorization: Bearer <JWT>, with the access token of /api/auth/verify",
    ),
    "the text undefined as token": (
        lambda b: b.with_header("Bearer undefined"),
        "access-token-malformed",
        "Send the access token of /api/auth/verify",
    ),
    "a token with a changed letter": (
        lambda b: b.with_header(f"Bearer {b.wallet.token}"[:-6] + "AAAAAA"),
        "access-token-signature-invalid",
        "Send it unchanged, or sign in again",
    ),
    "a form instead of JSON": (
        lambda b: b.wallet.send(
            "post", EXECUTE, data="a=b", content_type="application/x-www-form-urlencoded"
        ),
        "unsupported-media-type",
        "Send the body as application/json",
    ),
    "no content type": (
        lambda b: b.wallet.send("post", EXECUTE, data=json.dumps(execute_body(b.call())), content_type=""),
        "unsupported-media-type",
        "Send the body as application/json",
    ),
    "GET instead of POST": (
        lambda b: b.wallet.send("get", QUOTA),
        "method-not-allowed",
        "The header Allow of this response lists",
    ),
    "a path with a version": (
        lambda b: b.wallet.post("/api/v1/relay/execute", {}),
        "not-found",
        "Check the base URL and the path letter by letter; /api/docs lists the paths",
    ),
    # The quota, statuses and payments.
    "the quota without a signature": (
        lambda b: b.wallet.post(QUOTA, {"address": b.profile.profile_address}),
        "invalid-request",
        "This field is required",
    ),
    "the quota of a minute ago": (
        lambda b: b.quota(**quota_body(b.profile, seconds=-60)),
        "timestamp-out-of-window",
        "Sign the current time",
    ),
    "the quota's time in milliseconds": (
        lambda b: b.quota(timestamp=_NOW * 1000),
        "timestamp-out-of-window",
        "Send seconds, not milliseconds",
    ),
    "the quota's message in another form": (
        lambda b: b.quota(signature="0x" + sign_digest(b.key, keccak(text="quota")).hex()),
        "quota-signature-invalid",
        "Sign keccak256.* by personal_sign, with a controller that has SIGN",
    ),
    "the quota of another profile": (
        lambda b: b.wallet.post(QUOTA, quota_body(b.other)),
        "not-your-profile",
        "Send this address, or sign in with the other profile",
    ),
    "LSP-15 for a profile that never signed in": (
        lambda b: b.wallet.post(
            LSP15, {"address": random_address(), "transaction": execute_body(b.call())["transaction"]}
        ),
        "profile-not-registered",
        "Sign in with the profile once",
    ),
    "the status of a hash from elsewhere": (
        lambda b: b.wallet.post(STATUS, {"transactionHash": "0x" + "11" * 32}),
        "transaction-not-found",
        "Send a hash that execute returned",
    ),
    "the cost in major units": (
        lambda b: b.wallet.post(SUBSCRIBE, {"subscriptionCost": 25.5}),
        "invalid-request",
        "Send the amount in minor units: 25.50 is 2550",
    ),
}


@pytest.fixture
def beginner(
    services: Services,
    user: User,
    profile: Profile,
    create_profile: Callable[..., Profile],
    wallet: Wallet,
    monkeypatch: pytest.MonkeyPatch,
) -> Beginner:
    # A profile that errs this often would wait between its calls.
    monkeypatch.setattr(submission, "refused_calls", RefusedCalls(most=1_000))
    return Beginner(services, profile, create_profile(), wallet)


def _said(response: ApiResponse) -> str:
    return " ".join(
        [response.body["detail"], *(fault["detail"] for fault in response.body.get("errors", ()))]
    )


def test_each_mistake_is_answered_with_the_next_action(beginner: Beginner) -> None:
    assert len(MISTAKES) >= 20
    for name, (attempt, code, action) in MISTAKES.items():
        response = attempt(beginner)
        assert (response.body.get("code"), response.status >= 400) == (code, True), name
        assert re.search(action, _said(response)), (name, _said(response))
    # No mistake became a call.
    assert not RelayTransaction.objects.exists()


def test_a_trailing_slash_and_a_repeat_are_no_mistakes(beginner: Beginner) -> None:
    body = execute_body(beginner.call())
    responses = [beginner.wallet.post(path, body) for path in (EXECUTE, f"{EXECUTE}/", EXECUTE)]
    assert {response.status for response in responses} == {200}
    assert len({response.body["transactionHash"] for response in responses}) == 1


def test_another_call_under_the_same_nonce_is_told_to_take_the_next(beginner: Beginner) -> None:
    call = beginner.call()
    assert beginner.execute(call).status == 200
    response = beginner.execute(beginner.call())
    assert (response.body["code"], response.body["nonce"]) == ("relay-nonce-taken", str(call.relay_nonce))
    assert "Sign the next nonce" in _said(response)


def test_a_start_in_milliseconds_is_not_worth_waiting_for(beginner: Beginner) -> None:
    response = beginner.execute(beginner.call(validity=window(_NOW * 1000, _NOW * 1000 + 3600)))
    assert "Retry-After" not in response.headers
