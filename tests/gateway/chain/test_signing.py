"""The signer: the same bytes as everybody else's, and nothing that the service does not send."""

import logging
import secrets
import traceback
from dataclasses import replace
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from eth_account import Account
from hypothesis import given
from hypothesis import strategies as st

from gateway.chain.contracts import encode_execute_relay_call
from gateway.chain.signing import LocalSigner, NoSigner, get_signer, set_signer
from signer.transactions import PolicyViolation, UnsignedTransaction
from tests.fakes.pool import read_transaction
from tests.fakes.profiles import address_of, random_address, random_key

_CAP, _MAX_GAS = 20 * 10**9, 3_000_000


def _signer(*keys: str) -> LocalSigner:
    return LocalSigner(list(keys), chain_id=4201, fee_cap_wei=_CAP, max_gas=_MAX_GAS)


def _relay_call(**changed: Any) -> UnsignedTransaction:
    calldata = encode_execute_relay_call(
        signature=secrets.token_bytes(65), nonce=1 << 128, validity=0, payload=secrets.token_bytes(100)
    )
    transaction = UnsignedTransaction(4201, 3, 10**9, 2 * 10**9, 200_000, random_address(), calldata)
    return replace(transaction, **changed)


@given(
    st.integers(0, 2**63 - 1),
    st.integers(0, _CAP),
    st.integers(21_000, _MAX_GAS),
    st.binary(max_size=200),
    st.binary(max_size=65),
)
def test_bytes_and_hash_are_those_of_eth_account(
    nonce: int, fee: int, gas: int, payload: bytes, signature: bytes
) -> None:
    key = random_key()
    data = encode_execute_relay_call(signature=signature, nonce=nonce, validity=0, payload=payload)
    transaction = _relay_call(
        account_nonce=nonce,
        max_fee_per_gas_wei=fee,
        max_priority_fee_per_gas_wei=fee // 2,
        gas_limit=gas,
        data=data,
    )
    signed = _signer(key).sign(relayer=address_of(key), transaction=transaction)
    expected = Account.sign_transaction(
        {
            "type": 2,
            "chainId": 4201,
            "nonce": nonce,
            "maxFeePerGas": fee,
            "maxPriorityFeePerGas": fee // 2,
            "gas": gas,
            "to": transaction.to,
            "value": 0,
            "data": data,
        },
        key,
    )
    assert signed.raw == bytes(expected.raw_transaction)
    assert signed.transaction_hash == "0x" + bytes(expected.hash).hex()
    assert read_transaction(signed.raw).sender == address_of(key)


def test_signing_twice_gives_the_same_bytes() -> None:
    key, transaction = random_key(), _relay_call()
    signers = [_signer(key), _signer(random_key(), key)]
    assert len({one.sign(relayer=address_of(key), transaction=transaction).raw for one in signers}) == 1


def test_a_self_transfer_is_signed() -> None:
    key = random_key()
    relayer = address_of(key)
    transaction = _relay_call(to=relayer, data=b"", gas_limit=21_000)
    read = read_transaction(_signer(key).sign(relayer=relayer, transaction=transaction).raw)
    assert (read.sender, read.to, read.value, read.data) == (relayer, relayer, 0, b"")


@pytest.mark.parametrize(
    "changed",
    [
        {"chain_id": 42},
        {"max_fee_per_gas_wei": _CAP + 1},
        {"max_priority_fee_per_gas_wei": 2 * 10**9 + 1},
        {"max_priority_fee_per_gas_wei": -1},
        {"gas_limit": _MAX_GAS + 1},
        {"gas_limit": 0},
        {"data": b""},
        {"data": b"", "gas_limit": 21_000},
        {"data": bytes.fromhex("4c8a4e74")},
        {"data": bytes.fromhex("a9059cbb") + bytes(64)},
    ],
    ids=", ".join,
)
def test_transactions_that_the_service_never_sends_are_not_signed(changed: dict[str, Any]) -> None:
    key = random_key()
    with pytest.raises(PolicyViolation):
        _signer(key).sign(relayer=address_of(key), transaction=_relay_call(**changed))


def test_a_transfer_between_relayers_or_to_oneself_with_data_is_never_signed() -> None:
    keys = random_key(), random_key()
    own, other = map(address_of, keys)
    for changed in (
        {"to": other},
        {"to": other, "data": b"", "gas_limit": 21_000},
        {"to": own},
        {"to": own, "gas_limit": 21_000},
        {"to": own, "data": b"", "gas_limit": 21_001},
    ):
        with pytest.raises(PolicyViolation):
            _signer(*keys).sign(relayer=own, transaction=_relay_call(**changed))


def test_another_relayer_is_never_signed_for() -> None:
    with pytest.raises(PolicyViolation):
        _signer(random_key()).sign(relayer=random_address(), transaction=_relay_call())


def test_keys_appear_in_no_repr_or_error(caplog: pytest.LogCaptureFixture) -> None:
    key = random_key()
    signer = _signer(key)
    caplog.set_level(logging.DEBUG)
    logging.getLogger("test").info("%s %r %s", signer, signer, [signer])
    with pytest.raises(PolicyViolation) as refused:
        signer.sign(relayer=address_of(key), transaction=_relay_call(chain_id=1))
    text = caplog.text + "".join(traceback.format_exception(refused.value)) + repr(signer.__dict__)
    assert key[2:] not in text
    assert address_of(key) in text


@pytest.mark.parametrize("broken", ["0x12", "zz" * 32, "00" * 32, "ff" * 32, ""])
def test_a_broken_key_stops_the_start_and_is_not_quoted(broken: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="entry 2") as refused:
        _signer(random_key(), broken)
    text = "".join(traceback.format_exception(refused.value))
    assert "RELAY_RELAYER_KEYS" in text
    assert not broken or broken not in str(refused.value)
    assert refused.value.__suppress_context__


def test_the_settings_give_the_signer_and_a_test_may_install_another(settings: Any) -> None:
    keys = [random_key(), random_key()]
    settings.RELAY_RELAYER_KEYS = keys
    set_signer(None)
    try:
        assert get_signer().addresses() == [address_of(key) for key in keys]
        assert get_signer() is get_signer()
        other = _signer(random_key())
        set_signer(other)
        assert get_signer() is other
    finally:
        set_signer(None)


def test_a_process_without_keys_refuses_to_sign_and_to_name_relayers(settings: Any) -> None:
    settings.RELAY_SIGNER = "none"
    set_signer(None)
    with pytest.raises(NoSigner, match="does not sign"):
        get_signer()
