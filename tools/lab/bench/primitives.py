"""CPU time of the steps of one relay call: our code against general-purpose libraries."""

import secrets
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import django
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.conf import settings
from django.utils.timezone import now
from eth_account import Account
from eth_account.messages import encode_intended_validator
from web3 import Web3

from devstack.console import echo
from gateway.chain.contracts import (
    CONTRACT_ABI,
    GET_DATA,
    GET_NONCE,
    OWNER,
    TARGET,
    decode_execute_relay_call,
    encode_execute_relay_call,
    encode_get_nonce,
    encode_lsp20_verify_call,
)
from gateway.chain.lsp6 import permissions_key
from gateway.chain.lsp25 import relay_digest
from gateway.chain.node import Node, Result
from gateway.chain.nodes import Nodes
from gateway.chain.relay_states import RelayStateReader, code_result
from gateway.chain.rpc import Call
from gateway.chain.signatures import recover_address
from gateway.chain.signing import LocalSigner
from gateway.chain.types import RelayQuery
from gateway.chain.web3_reads import web3_over
from signer.transactions import UnsignedTransaction

_ROUNDS, _REPEATS = 9, 40
_CHAIN_ID = 4201
_FEE_WEI = 10**9


_WORD = secrets.token_bytes(32).hex()
_CODE = "0x363d3d373d3d3d363d73" + "11" * 20 + "5af43d82803e903d91602b57fd5bf3"
_REPLIES: dict[str, Any] = {
    "eth_getCode": _CODE,
    "eth_getBlockByNumber": {
        "number": "0x64",
        "timestamp": "0x65000000",
        "baseFeePerGas": "0x7",
        "hash": "0x" + "0a" * 32,
    },
    "eth_maxPriorityFeePerGas": "0x1",
    "eth_feeHistory": {"oldestBlock": "0x1", "reward": [["0x1"]] * 10, "gasUsedRatio": [0.5] * 10},
}
_RETURNED = {
    OWNER: "0x" + "00" * 12 + "22" * 20,
    TARGET: "0x" + "00" * 12 + "22" * 20,
    GET_NONCE: "0x" + _WORD,
    GET_DATA: "0x" + "20".rjust(64, "0") + "20".rjust(64, "0") + _WORD,
}
_REPLIES["eth_simulateV1"] = [
    {"calls": [{"status": "0x1", "gasUsed": "0x1f435", "returnData": "0x", "logs": []}]}
]


def _lens() -> str:
    code = code_result(bytes.fromhex(_CODE[2:]))
    returned = [bytes.fromhex(_RETURNED[name][2:]) for name in (OWNER, TARGET, GET_DATA, GET_NONCE)]
    return "0x" + "".join((len(one).to_bytes(32, "big") + one).hex() for one in (code, code, *returned))


_LENS = _lens()


class _CannedNode(Node):
    """Responds at once, so only building requests and parsing responses are measured."""

    def __init__(self) -> None:
        super().__init__(
            "",
            "canned",
            chain_id=None,
            timeout_seconds=1,
            check_seconds=1,
            places=1,
            is_contradicted=lambda *_: False,
        )

    def ask(self, calls: Sequence[Call], *, checked: bool = False) -> list[Any]:
        return [call.read(_canned(call.method, call.params)) for call in calls]


class _CannedNodes(Nodes):
    """Only that node."""

    def __init__(self) -> None:
        super().__init__([], timeout_seconds=1)
        self._node = _CannedNode()

    def read(self, read: Callable[[Node], Result]) -> Result:
        return self._node.read(read)


def _canned(method: str, params: list[Any]) -> Any:
    if method != "eth_call":
        return _REPLIES[method]
    return _LENS if len(params) == 3 else _RETURNED[bytes.fromhex(params[0]["data"][2:10])]


@dataclass(frozen=True)
class Comparison:
    """Microseconds of our code and of the library for the same bytes."""

    name: str
    ours: float
    library: float

    @property
    def ratio(self) -> float:
        """The library's time divided by ours."""
        return self.library / self.ours


def bench_primitives() -> int:
    """Measure and print."""
    echo("One step of a relay call, microseconds (median): ours, the general-purpose library, ratio")
    for row in compare():
        echo(f"  {row.name:28} {row.ours:8.1f} {row.library:8.1f}  × {row.ratio:.1f}")
    return 0


def compare() -> list[Comparison]:
    """Measure each step of a relay call with our code and with the library."""
    account = Account.create()
    key_manager = Account.create().address
    payload, nonce = secrets.token_bytes(164), secrets.randbelow(2**64)
    words = b"".join(word.to_bytes(32, "big") for word in (25, _CHAIN_ID, nonce, 0, 0))
    message = encode_intended_validator(key_manager, primitive=words + payload)
    signature = bytes(account.sign_message(message).signature)
    fields = {"key_manager": key_manager, "relay_nonce": nonce, "validity": 0, "payload": payload}
    digest = relay_digest(chain_id=_CHAIN_ID, **fields)
    calldata = encode_execute_relay_call(signature=signature, nonce=nonce, validity=0, payload=payload)
    contract = Web3().eth.contract(abi=CONTRACT_ABI)
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
            "decode executeRelayCall",
            _microseconds(lambda: decode_execute_relay_call(calldata)),
            _microseconds(lambda: contract.decode_function_input(calldata)),
        ),
        Comparison(
            "encode getNonce",
            _microseconds(lambda: encode_get_nonce(controller=account.address, channel=7)),
            _microseconds(lambda: contract.encode_abi("getNonce", [account.address, 7])),
        ),
        Comparison(
            "encode lsp20VerifyCall",
            _microseconds(
                lambda: encode_lsp20_verify_call(
                    profile=key_manager, controller=account.address, payload=payload
                )
            ),
            _microseconds(
                lambda: contract.encode_abi(
                    "lsp20VerifyCall", [key_manager, key_manager, account.address, 0, payload]
                )
            ),
        ),
        _relay_state(account.address, key_manager),
        _access_token(account.address),
        Comparison(
            "sign the transaction",
            _microseconds(lambda: signer.sign(relayer=account.address, transaction=unsigned)),
            _microseconds(lambda: account.sign_transaction(whole)),
        ),
    ]


def _relay_state(controller: str, key_manager: str) -> Comparison:
    """Compare reading everything that a preflight needs; ours also executes the call."""
    reader = RelayStateReader(_CannedNodes(), price_seconds=60)
    query = RelayQuery(
        profile=key_manager,
        key_manager=key_manager,
        controller=controller,
        channel=7,
        sender=controller,
        calldata=bytes(400),
        gas_limit=150_000,
        gas_cap=3_000_000,
    )
    eth = web3_over(lambda calls: [_canned(call.method, call.params) for call in calls]).eth
    address = Web3.to_checksum_address(key_manager)
    contract = eth.contract(address=address, abi=CONTRACT_ABI)

    def call_by_call() -> None:
        eth.get_code(address)
        eth.get_code(address)
        contract.functions.owner().call()
        contract.functions.target().call()
        contract.functions.getData(permissions_key(controller)).call()
        contract.functions.getNonce(controller, 7).call()
        eth.get_block("latest")
        eth.fee_history(10, "latest", [50])
        eth.max_priority_fee  # noqa: B018 - a property that asks the node

    return Comparison(
        "read the relay state",
        _microseconds(lambda: reader.read([query])),
        _microseconds(call_by_call),
    )


def _access_token(address: str) -> Comparison:
    """Compare verifying a valid access token; the library is simplejwt with our keys."""
    settings.configure(
        SECRET_KEY=secrets.token_urlsafe(50),
        INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "pgtrigger", "users"],
        AUTH_USER_MODEL="users.User",
        AUTH_SIGNING_KEYS=generate_private_key(SECP256R1())
        .private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        .decode(),
        SIMPLE_JWT={
            "ALGORITHM": "ES256",
            "SIGNING_KEY": None,
            "ISSUER": "https://gateway.example",
            "AUDIENCE": "https://gateway.example",
            "USER_ID_CLAIM": "sub",
        },
    )
    django.setup()
    from users.models import SignInSession, User
    from users.tokens import AccessToken, KeySetBackend

    session = SignInSession(user=User(pk=1, profile_address=address), controller_address=address)
    token = AccessToken.for_session(session, now=now())
    backend, text = cast("KeySetBackend", token.get_token_backend()), str(token).encode()
    return Comparison(
        "verify the access token",
        _microseconds(lambda: backend.decode(text)),
        _microseconds(lambda: KeySetBackend.decode(backend, text)),
    )


def _microseconds(work: Callable[[], object]) -> float:
    rounds = []
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        for _ in range(_REPEATS):
            work()
        rounds.append((time.perf_counter() - started) / _REPEATS * 1e6)
    return statistics.median(rounds)
