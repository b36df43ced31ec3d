"""A voucher is good for its own sponsor, profile, chain and signer, before its deadline, and for nothing else."""

import base64
import json
import secrets
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data

from sponsors.errors import VoucherRefused
from sponsors.rules.vouchers import SignedVoucher, Voucher, parse, verify
from tests.factories import random_address
from tests.fakes.profiles import address_of, random_key
from tests.sponsors.rules.rows import NOW, voucher

_CHAIN = 42
_TYPES = [
    {"name": "sponsor", "type": "string"},
    {"name": "policy", "type": "string"},
    {"name": "profile", "type": "address"},
    {"name": "id", "type": "bytes32"},
    {"name": "deadline", "type": "uint64"},
    {"name": "maximumCredits", "type": "uint64"},
]


def _signed(brought: Voucher, key: str, *, chain_id: int = _CHAIN, name: str = "Relay sponsor") -> bytes:
    """Sign as a sponsor's server does that knows only the documented form."""
    message = {
        "sponsor": brought.sponsor,
        "policy": brought.policy,
        "profile": brought.profile,
        "id": brought.voucher_id,
        "deadline": brought.deadline,
        "maximumCredits": brought.maximum_credits,
    }
    typed = encode_typed_data(
        full_message={
            "types": {
                "EIP712Domain": [
                    {"name": "name", "type": "string"},
                    {"name": "version", "type": "string"},
                    {"name": "chainId", "type": "uint256"},
                ],
                "Voucher": _TYPES,
            },
            "primaryType": "Voucher",
            "domain": {"name": name, "version": "1", "chainId": chain_id},
            "message": message,
        }
    )
    return bytes(Account.from_key(key).sign_message(typed).signature)


def _verified(brought: Voucher, signature: bytes, key: str, **values: Any) -> str:
    expected = {"sponsor": brought.sponsor, "profile": brought.profile, "now": NOW, "chain_id": _CHAIN}
    return verify(brought, signature, **{"signers": {address_of(key)}, **expected, **values})


def _reason(*arguments: Any, **values: Any) -> Any:
    with pytest.raises(VoucherRefused) as refused:
        _verified(*arguments, **values)
    assert (refused.value.code, refused.value.status) == ("sponsor-voucher", 403)
    return refused.value.members["reason"]


def test_a_voucher_of_a_registered_signer_is_accepted_and_the_signer_named() -> None:
    key, brought = random_key(), voucher()
    signers = {random_address(), address_of(key)}

    assert _verified(brought, _signed(brought, key), key, signers=signers) == address_of(key)


def test_a_voucher_is_refused_for_another_sponsor_profile_or_signer() -> None:
    key, brought = random_key(), voucher()
    signature = _signed(brought, key)

    assert _reason(brought, signature, key, sponsor="another") == "sponsor"
    assert _reason(brought, signature, key, profile=random_address()) == "profile"
    assert _reason(brought, signature, key, signers={random_address()}) == "signer"
    assert _reason(brought, signature, key, signers=()) == "signer"


def test_a_voucher_is_refused_on_another_chain_and_for_another_use() -> None:
    key, brought = random_key(), voucher()

    assert _reason(brought, _signed(brought, key, chain_id=4201), key) == "signer"
    assert _reason(brought, _signed(brought, key), key, chain_id=4201) == "signer"
    assert _reason(brought, _signed(brought, key, name="Another service"), key) == "signer"


@pytest.mark.parametrize(
    "changes",
    [
        {"sponsor": "another"},
        {"policy": "another"},
        {"profile": random_address()},
        {"voucher_id": secrets.token_bytes(32)},
        {"deadline": int(NOW.timestamp()) + 10**6},
        {"maximum_credits": 10**7},
    ],
    ids=lambda changes: str(next(iter(changes))),
)
def test_no_field_can_be_changed_after_signing(changes: dict[str, Any]) -> None:
    key, brought = random_key(), voucher()
    changed = replace(brought, **changes)

    assert _reason(changed, _signed(brought, key), key) == "signer"


@pytest.mark.parametrize(("since", "is_good"), [(-1, True), (0, False), (1, False)])
def test_a_voucher_is_valid_before_its_deadline(since: int, is_good: bool) -> None:
    key, brought = random_key(), voucher()
    signature = _signed(brought, key)
    now = datetime.fromtimestamp(brought.deadline, UTC) + timedelta(seconds=since)

    if is_good:
        assert _verified(brought, signature, key, now=now) == address_of(key)
    else:
        assert _reason(brought, signature, key, now=now) == "deadline"


def test_a_signature_of_a_wrong_form_is_refused() -> None:
    key, brought = random_key(), voucher()

    assert _reason(brought, b"", key) == "signature"
    assert _reason(brought, secrets.token_bytes(64) + b"\x09", key) == "signature"
    assert _reason(brought, bytes(65), key) == "signature"


@pytest.mark.parametrize(
    "changes",
    [{"deadline": 2**64}, {"maximum_credits": 2**64}, {"maximum_credits": -1}, {"voucher_id": b"1" * 31}],
)
def test_fields_out_of_range_are_refused(changes: dict[str, Any]) -> None:
    key, brought = random_key(), voucher()

    assert _reason(replace(brought, **changes), _signed(brought, key), key) == "range"


def _text(**fields: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")


def _fields(brought: Voucher, signature: bytes) -> dict[str, Any]:
    return {
        "sponsor": brought.sponsor,
        "policy": brought.policy,
        "profile": brought.profile.lower(),
        "id": "0x" + brought.voucher_id.hex(),
        "deadline": brought.deadline,
        "maximumCredits": brought.maximum_credits,
        "signature": "0x" + signature.hex(),
    }


def test_a_voucher_is_read_from_its_text() -> None:
    brought, signature = voucher(), secrets.token_bytes(65)

    assert parse(_text(**_fields(brought, signature))) == SignedVoucher(brought, signature)


@pytest.mark.parametrize(
    "changes",
    [
        {"profile": "0x12"},
        {"profile": 7},
        {"id": "0xzz"},
        {"deadline": "soon"},
        {"signature": None},
        {"maximumCredits": 1e400},
    ],
)
def test_a_text_of_another_form_is_refused(changes: dict[str, Any]) -> None:
    fields = _fields(voucher(), secrets.token_bytes(65))

    for text in (_text(**{**fields, **changes}), _text(**fields)[:-9], "%", "", "bnVsbA", "W10", "é"):
        with pytest.raises(VoucherRefused) as refused:
            parse(text)
        assert refused.value.members["reason"] == "form"
