"""What a client returns where clients differ, and what the service makes of each response."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from devstack.rpc import Rpc, RpcFailed
from devstack.services.anvil import CHAIN_ID
from devstack.services.stack import Services
from devstack.world.deployer import ETHER
from devstack.world.keys import address_of, sign_transaction
from gateway.chain.node_errors import is_block_error, is_call_error, revert_data, send_outcome
from gateway.chain.rpc import RpcError

_GWEI, _GAS = 10**9, 21_000
# Characters of a response that the table shows.
_LONGEST = 90
_BATCHES = (100, 200, 1_000, 2_000)
# Contract code: revert with the four bytes 0xdeadbeef.
_REVERTING = "0x63deadbeef60e01b60005260046000fd"
# And return the number 7 as a word.
_ANSWERING, _ANSWER = "0x600760005260206000f3", 7
# The members of a receipt that the service reads.
_READ = ("transactionHash", "blockNumber", "blockHash", "status", "gasUsed", "effectiveGasPrice")


@dataclass(frozen=True)
class Response:
    """One call, and the client's response in a cell of the table."""

    call: str
    text: str


def ask_everything(services: Services) -> list[Response]:
    """Ask the client about everything in which clients differ, in a fixed order."""
    rpc = Rpc(services.rpc_url)
    key = "0x" + secrets.token_hex(32)
    services.world.fund(10 * ETHER, address_of(key))
    sender = _Sender(rpc, key)
    reads: list[tuple[str, Callable[[], str]]] = [
        ("fee history of 5 blocks", partial(_fee_history, rpc)),
        ("block `safe`", partial(_block, rpc, "safe")),
        ("block `finalized`", partial(_block, rpc, "finalized")),
        ("receipt of an unknown hash", lambda: _result(rpc, "eth_getTransactionReceipt", "0x" + "00" * 32)),
        ("state at block 0", lambda: _result(rpc, "eth_getBalance", sender.address, "0x0")),
        ("state at a future block", lambda: _result(rpc, "eth_getBalance", sender.address, "0x5f5e100")),
        ("state 3 blocks ago", lambda: _result(rpc, "eth_getTransactionCount", sender.address, _ago(rpc, 3))),
        ("a call that reverts with data", partial(_revert, rpc)),
        ("a call with code in its place", partial(_override, rpc)),
        (
            "eth_simulateV1",
            lambda: _result(rpc, "eth_simulateV1", {"blockStateCalls": [{"calls": []}]}, "latest"),
        ),
        ("largest accepted batch", partial(_largest_batch, rpc)),
    ]
    sends: list[tuple[str, Callable[[], str]]] = [
        ("send: more than the balance", lambda: sender.send(value=11 * ETHER)),
        ("send: gas below 21,000", lambda: sender.send(gas=20_999)),
        ("send: gas above the block's", lambda: sender.send(gas=2**40, fee=1, tip=1)),
        ("send: fee below the base fee", lambda: sender.send(fee=1, tip=1)),
        ("send: tip above the fee", lambda: sender.send(fee=_GWEI, tip=2 * _GWEI)),
        ("send: another chain's id", lambda: sender.send(chain_id=CHAIN_ID + 1)),
        ("send: nonce 3 ahead", lambda: sender.send(ahead=3)),
        ("send", sender.send),
        ("send: the same bytes again", sender.send_again),
        ("send: replaced at a lower fee", lambda: sender.send(fee=30 * _GWEI, value=1)),
        ("send: replaced at twice the fee", lambda: sender.send(fee=300 * _GWEI, tip=200 * _GWEI, value=1)),
    ]
    after: list[tuple[str, Callable[[], str]]] = [
        ("receipt of the replacement", lambda: _receipt(rpc, sender.hashes[-1])),
        ("the replaced transaction, by hash", lambda: _transaction(rpc, sender.hashes[-2])),
        ("send: a nonce that is mined", lambda: sender.send(ahead=-1)),
    ]
    results = [Response(name, ask()) for name, ask in reads]
    for group in (sends, after):
        # The clients make a block per period, so all of a group falls between two blocks.
        services.rpc.call("evm_mine")
        results += [Response(name, ask()) for name, ask in group]
    return results


class _Sender:
    """An account that sends transfers to itself."""

    def __init__(self, rpc: Rpc, key: str) -> None:
        self._rpc, self._key, self.address = rpc, key, address_of(key)
        self._last = ""
        self._number = 0
        # Of the accepted transactions, in the order in which they were sent.
        self.hashes: list[str] = []

    def send(
        self,
        *,
        value: int = 0,
        gas: int = _GAS,
        fee: int = 100 * _GWEI,
        tip: int = _GWEI,
        chain_id: int = CHAIN_ID,
        ahead: int = 0,
    ) -> str:
        """Send one transfer; return the client's words and the kind that the service reads in them."""
        fields: dict[str, Any] = {
            "chainId": chain_id,
            "nonce": max(0, self._number + ahead + (1 if ahead < 0 else 0)),
            "gas": gas,
            "maxFeePerGas": fee,
            "maxPriorityFeePerGas": tip,
            "to": bytes.fromhex(self.address[2:]),
            "value": value,
            "data": b"",
        }
        self._last = sign_transaction(self._key, fields)
        return self.send_again()

    def send_again(self) -> str:
        try:
            self.hashes.append(self._rpc.call("eth_sendRawTransaction", self._last))
        except RpcFailed as failure:
            error = _as_error(failure)
            return _shown(error, send_outcome(error).kind.name)
        return "accepted"


def _fee_history(rpc: Rpc) -> str:
    history = rpc.call("eth_feeHistory", "0x5", "latest", [50])
    counts = {name: len(history.get(name) or []) for name in ("baseFeePerGas", "gasUsedRatio", "reward")}
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _block(rpc: Rpc, tag: str) -> str:
    try:
        block = rpc.call("eth_getBlockByNumber", tag, False)
    except RpcFailed as failure:
        error = _as_error(failure)
        return (
            f"{error.code} {error.message} → {'no such block yet' if is_block_error(error) else 'node fault'}"
        )
    return "null" if block is None else f"block {int(block['number'], 16)}"


def _result(rpc: Rpc, method: str, *params: Any) -> str:
    try:
        return str(rpc.call(method, *params))[:_LONGEST]
    except RpcFailed as failure:
        error = _as_error(failure)
        return _shown(error, "an answer" if is_call_error(error) else "node fault")


def _revert(rpc: Rpc) -> str:
    place = "0x" + "77" * 20
    call = ({"to": place, "data": "0x"}, "latest", {place: {"code": _REVERTING}})
    try:
        rpc.call("eth_call", *call)
    except RpcFailed as failure:
        error = _as_error(failure)
        data = f"data {revert_data(error).hex()}"
        return _shown(error, f"an answer, {data}" if is_call_error(error) else "node fault")
    return "no error"


def _override(rpc: Rpc) -> str:
    place = "0x" + "77" * 20
    try:
        result = rpc.call("eth_call", {"to": place, "data": "0x"}, "latest", {place: {"code": _ANSWERING}})
    except RpcFailed as failure:
        error = _as_error(failure)
        return _shown(error, "read one by one" if is_call_error(error) else "node fault")
    return "taken" if int(result, 16) == _ANSWER else "the code is ignored"


def _receipt(rpc: Rpc, transaction_hash: str) -> str:
    receipt = rpc.call("eth_getTransactionReceipt", transaction_hash)
    if receipt is None:
        return "null"
    missing = [name for name in _READ if receipt.get(name) is None]
    return f"without {', '.join(missing)}" if missing else "complete"


def _transaction(rpc: Rpc, transaction_hash: str) -> str:
    found = rpc.call("eth_getTransactionByHash", transaction_hash)
    if found is None:
        return "null"
    return "pending" if found.get("blockNumber") is None else "mined"


def _ago(rpc: Rpc, blocks: int) -> str:
    return hex(max(0, int(rpc.call("eth_blockNumber"), 16) - blocks))


def _largest_batch(rpc: Rpc) -> str:
    largest = 0
    for size in _BATCHES:
        try:
            rpc.batch([("eth_chainId",)] * size)
        except (RpcFailed, LookupError, TypeError, ValueError, OSError):
            break
        largest = size
    return f"at least {largest}" if largest == _BATCHES[-1] else f"{largest}"


def _shown(error: RpcError, meaning: str) -> str:
    """Return a cell: the client's code and words, and what the service makes of them."""
    return f"{error.code} {error.message[:_LONGEST]} → {meaning}".replace("|", "\\|")


def _as_error(failure: RpcFailed) -> RpcError:
    """Return the error as the service's own client reads it."""
    message = str(failure).split(": ", 1)[1]
    return RpcError(code=failure.code or 0, message=message, data=failure.data)
