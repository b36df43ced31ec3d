"""The treasury's key signs transfers to relayers, and nothing else."""

import secrets

import pytest
from django.core.exceptions import ImproperlyConfigured
from eth_account import Account

from gateway.chain.fees import Fees
from gateway.chain.treasury import Treasury
from signer.transactions import PolicyViolation
from tests.fakes.profiles import address_of, random_address, random_key

_CAP, _MOST = 20 * 10**9, 2 * 10**17
_FEES = Fees(2 * 10**9, 10**9, 10**9)


def _treasury(key: str) -> Treasury:
    return Treasury(key, chain_id=4201, fee_cap_wei=_CAP, max_value_wei=_MOST)


def test_bytes_and_hash_are_those_of_eth_account() -> None:
    key, relayer, value = random_key(), random_address(), 1 + secrets.randbelow(_MOST)
    nonce = secrets.randbelow(2**40)
    signed = _treasury(key).sign_transfer(
        to=relayer, value_wei=value, account_nonce=nonce, fees=_FEES, relayers=[random_address(), relayer]
    )
    expected = Account.sign_transaction(
        {
            "type": 2,
            "chainId": 4201,
            "nonce": nonce,
            "maxFeePerGas": _FEES.max_fee_per_gas_wei,
            "maxPriorityFeePerGas": _FEES.max_priority_fee_per_gas_wei,
            "gas": 21_000,
            "to": relayer,
            "value": value,
            "data": b"",
        },
        key,
    )
    assert signed.raw == bytes(expected.raw_transaction)
    assert signed.transaction_hash == "0x" + bytes(expected.hash).hex()


@pytest.mark.parametrize(
    ("value", "fees", "is_relayer"),
    [
        (1, _FEES, False),
        (0, _FEES, True),
        (_MOST + 1, _FEES, True),
        (1, Fees(_CAP + 1, 1, 1), True),
        (1, Fees(1, 2, 1), True),
    ],
    ids=["to a stranger", "nothing", "too much", "above the fee cap", "a tip above the fee"],
)
def test_whatever_the_service_never_sends_is_refused(value: int, fees: Fees, is_relayer: bool) -> None:
    receiver = random_address()
    with pytest.raises(PolicyViolation):
        _treasury(random_key()).sign_transfer(
            to=receiver,
            value_wei=value,
            account_nonce=0,
            fees=fees,
            relayers=[receiver] if is_relayer else [random_address()],
        )


def test_no_text_shows_the_key() -> None:
    key = random_key()
    assert repr(_treasury(key)) == f"Treasury({address_of(key)})"
    with pytest.raises(ImproperlyConfigured, match="RELAY_TREASURY_KEY is not a private key") as refusal:
        _treasury(key[:-2])
    assert key[2:-2] not in str(refusal.value)
