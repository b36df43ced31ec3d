"""Each known signing mistake is recognised and reported with its own code."""

import secrets
from dataclasses import replace
from typing import Any

import pytest
from eth_account import Account
from eth_account.messages import encode_defunct

from gateway.chain.lsp25 import RelayCall, WrongHash, relay_digest, wrong_hashes
from gateway.chain.mistakes import SignatureMistake
from gateway.chain.signatures import recover_address
from tests.fakes.profiles import Controller, Profile, random_address, set_data, sign_relay_call, transfer
from tests.gateway.chain.vectors import VECTORS, octets

_PUBLISHED = {
    "personal_sign_of_packed_hash(0.6/0.7 form)": "signature-legacy-0-7",
    "version6_with_validity(0.10)": "signature-legacy-0-10",
    "version6_no_validity(0.8/0.9)": "signature-legacy-0-9",
    "personal_sign_over_lsp25_inner": "signature-personal-sign-message",
    "up_as_validator": "signature-profile-as-validator",
}
_CHAIN_ID = 4201


@pytest.mark.parametrize(("name", "code"), _PUBLISHED.items())
def test_the_published_wrong_hashes_are_known(name: str, code: str) -> None:
    call = RelayCall(VECTORS["key_manager"], octets(VECTORS["payload"]), b"", 0)
    codes = {
        "0x" + wrong.digest.hex(): wrong.mistake.code
        for wrong in wrong_hashes(chain_id=42, call=call, profile=VECTORS["up"])
    }
    assert codes[VECTORS["known_wrong_hashes_chain42_nonce0"][name]] == code
    assert set(_PUBLISHED) == set(VECTORS["known_wrong_hashes_chain42_nonce0"])


@pytest.fixture
def profile() -> Profile:
    """Return a profile of one controller."""
    return Profile(random_address(), random_address(), (Controller(),))


def _signed_hashes(profile: Profile, call: RelayCall, signature: bytes) -> list[WrongHash]:
    return [
        wrong
        for wrong in wrong_hashes(chain_id=_CHAIN_ID, call=call, profile=profile.profile_address)
        if recover_address(wrong.digest, signature) == profile.controller.address
    ]


@pytest.mark.parametrize(
    ("changed", "code", "named"),
    [
        ({"chain_id": 42}, "signature-other-chain", "42"),
        ({"chain_id": 2828}, "signature-other-chain", "2828"),
        ({"chain_id": 1}, "signature-other-chain", "1"),
        ({"value": 10**18}, "signature-value-not-zero", str(10**18)),
        ({"relay_nonce": 3 << 128 | 6}, "signature-other-nonce", str(3 << 128 | 6)),
        ({"relay_nonce": 3 << 128 | 8}, "signature-other-nonce", str(3 << 128 | 8)),
        ({"relay_nonce": 7}, "signature-channel-missing", str(3 << 128 | 7)),
        ({"validity": 0}, "signature-validity-missing", "validityTimestamps"),
    ],
)
def test_a_wrong_number_in_the_hash_is_named(
    profile: Profile, changed: dict[str, int], code: str, named: str
) -> None:
    call = RelayCall(
        profile.key_manager_address, transfer(random_address(), 10**18), b"", 3 << 128 | 7, 2**33
    )
    fields: dict[str, Any] = {
        "chain_id": _CHAIN_ID,
        "key_manager": call.key_manager,
        "relay_nonce": call.relay_nonce,
        "validity": call.validity,
        "payload": call.payload,
    }
    signature = profile.controller.sign(relay_digest(**fields | changed))
    (wrong,) = _signed_hashes(profile, call, signature)
    assert wrong.mistake.code == code
    assert named in wrong.detail
    assert "{" not in wrong.detail


def test_personal_sign_over_the_hash_is_named_as_bytes_and_as_text(profile: Profile) -> None:
    call = sign_relay_call(profile, set_data(), chain_id=_CHAIN_ID)
    digest = relay_digest(
        chain_id=_CHAIN_ID, key_manager=call.key_manager, relay_nonce=0, validity=0, payload=call.payload
    )
    account = Account.from_key(profile.controller.private_key)
    as_bytes = account.sign_message(encode_defunct(primitive=digest)).signature
    as_text = account.sign_message(encode_defunct(text="0x" + digest.hex())).signature
    codes = [
        _signed_hashes(profile, call, bytes(signature))[0].mistake.code for signature in (as_bytes, as_text)
    ]
    assert codes == ["signature-personal-sign-digest", "signature-personal-sign-text"]


def test_the_right_hash_is_never_among_the_wrong_ones(profile: Profile) -> None:
    for chain_id in (42, 4201, 2828, 31337):
        for nonce in (0, 1, 5 << 128):
            call = sign_relay_call(profile, set_data(), chain_id=chain_id, relay_nonce=nonce)
            wrong = wrong_hashes(chain_id=chain_id, call=call, profile=profile.profile_address)
            recovered = {recover_address(one.digest, call.signature) for one in wrong}
            assert profile.controller.address not in recovered
            assert len({one.digest for one in wrong}) == len(wrong)


def test_a_signature_over_something_else_finds_no_mistake(profile: Profile) -> None:
    call = sign_relay_call(profile, set_data(), chain_id=_CHAIN_ID)
    other = replace(call, payload=set_data())
    assert _signed_hashes(profile, other, call.signature) == []


def test_an_invalid_call_becomes_an_error_with_its_facts(profile: Profile) -> None:
    call = sign_relay_call(profile, set_data(), chain_id=_CHAIN_ID)
    wrong = wrong_hashes(chain_id=_CHAIN_ID, call=call, profile=profile.profile_address)
    refusals = [one.refusal(controller=profile.controller.address) for one in wrong]
    assert {type(refusal) for refusal in refusals} <= set(SignatureMistake.__subclasses__())
    assert {refusal.status for refusal in refusals} == {400}
    assert [refusal.code for refusal in refusals] == [one.mistake.code for one in wrong]
    assert refusals[0].members == {"controller": profile.controller.address}


def test_a_nonce_that_was_sent_without_its_signed_channel_is_named(profile: Profile) -> None:
    sequence, channel = secrets.randbelow(100), 1 + secrets.randbelow(16)
    call = RelayCall(profile.key_manager_address, transfer(random_address(), 1), b"", sequence)
    signed = replace(call, relay_nonce=channel << 128 | sequence)

    (wrong,) = _signed_hashes(profile, call, profile.controller.sign(signed.digest(_CHAIN_ID)))

    assert wrong.mistake.code == "signature-channel-not-sent"
    assert str(signed.relay_nonce) in wrong.detail
