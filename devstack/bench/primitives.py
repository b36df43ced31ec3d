"""The arithmetic of one relay call, against the general-purpose libraries: microseconds, median of rounds."""

import secrets
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from eth_account import Account
from eth_account.messages import encode_intended_validator
from web3 import Web3

from gateway.chain.contracts import encode_execute_relay_call
from gateway.chain.lsp25 import relay_digest
from gateway.chain.signatures import recover_address
from gateway.chain.signing import LocalSigner, UnsignedTransaction

_ROUNDS, _REPEATS = 9, 40
_CHAIN_ID = 4201
_FEE_WEI = 10**9
_ABI = [
    {
        "type": "function",
        "name": "executeRelayCall",
        "stateMutability": "payable",
        "inputs": [
            {"name": "signature", "type": "bytes"},
            {"name": "nonce", "type": "uint256"},
            {"name": "validityTimestamps", "type": "uint256"},
            {"name": "payload", "type": "bytes"},
        ],
        "outputs": [{"name": "", "type": "bytes"}],
    }
]


@dataclass(frozen=True)
class Comparison:
    """Microseconds of ours and of the library's way to the same bytes."""

    name: str
    ours: float
    library: float

    @property
    def ratio(self) -> float:
        """How many times the library's way costs of ours."""
        return self.library / self.ours


def compare() -> list[Comparison]:
    """Measure each step of a relay call both ways."""
    account = Account.create()
    key_manager = Account.create().address
    payload, nonce = secrets.token_bytes(164), secrets.randbelow(2**64)
    words = b"".join(word.to_bytes(32, "big") for word in (25, _CHAIN_ID, nonce, 0, 0))
    message = encode_intended_validator(key_manager, primitive=words + payload)
    signature = bytes(account.sign_message(message).signature)
    fields = {"key_manager": key_manager, "relay_nonce": nonce, "validity": 0, "payload": payload}
    digest = relay_digest(chain_id=_CHAIN_ID, **fields)
    calldata = encode_execute_relay_call(signature=signature, nonce=nonce, validity=0, payload=payload)
    contract = Web3().eth.contract(abi=_ABI)
    signer = LocalSigner([account.key.hex()], chain_id=_CHAIN_ID, fee_cap_wei=_FEE_WEI, max_gas=10**6)
    unsigned = UnsignedTransaction(_CHAIN_ID, 7, 1, _FEE_WEI, 300_000, key_manager, calldata)
    whole = {
        "chainId": _CHAIN_ID,
        "nonce": 7,
        "maxPriorityFeePerGas": 1,
        "maxFeePerGas": _FEE_WEI,
        "gas": 300_000,
        "to": key_manager,
        "value": 0,
        "data": calldata,
        "type": 2,
    }
    arguments = [signature, nonce, 0, payload]
    return [
        Comparison(
            "recover the controller",
            _microseconds(lambda: recover_address(digest, signature)),
            _microseconds(lambda: Account.recover_message(message, signature=signature)),
        ),
        Comparison(
            "encode executeRelayCall",
            _microseconds(
                lambda: encode_execute_relay_call(
                    signature=signature, nonce=nonce, validity=0, payload=payload
                )
            ),
            _microseconds(lambda: contract.encode_abi("executeRelayCall", arguments)),
        ),
        Comparison(
            "sign the transaction",
            _microseconds(lambda: signer.sign(relayer=account.address, transaction=unsigned)),
            _microseconds(lambda: account.sign_transaction(whole)),
        ),
    ]


def _microseconds(work: Callable[[], object]) -> float:
    rounds = []
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        for _ in range(_REPEATS):
            work()
        rounds.append((time.perf_counter() - started) / _REPEATS * 1e6)
    return statistics.median(rounds)
