"""
The chain's state for relay calls, for many calls in one round trip.

The trip contains lenses, each of which reads the contracts of up to eight calls, and a simulation of each call: the
transaction that would be signed, executed by the node at its gas limit, or an estimate if no limit is known. The
simulation is separate, because a lens that executed the call would warm storage and lower its gas. For nodes without
state overrides or `eth_simulateV1` there are older methods, which cost more.
"""

import itertools
import time
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from eth_hash.auto import keccak

from gateway.chain import contracts, lsp6, node_errors, rpc
from gateway.chain.nodes import NEWEST_BLOCK, Nodes
from gateway.chain.rpc import Call, RpcError
from gateway.chain.types import Head, RelayQuery, RelayState, Trial
from signer.contracts import implementation_of

_LATEST = "latest"
_FEE_BLOCKS, _FEE_PERCENTILE = 10, 50
# While those blocks use less gas together than this many full blocks, senders do not compete for space.
_FEWEST_USED_BLOCKS = 1.0
# Callers choose the contract, so cap the gas of each read.
READ_GAS = 500_000
_NOT_TRIED = Trial(gas_limit=None)
# How long the older methods are used after a node has lacked a method.
_RETRY_SECONDS = 600.0
Item = TypeVar("Item")


class _Price(NamedTuple):
    """The newest block and the tip, and until when, on the monotonic clock, they are used."""

    head: Head
    market_tip_wei: int
    valid_until: float


class RelayStateReader:
    """
    Reads the states of relay calls. Safe to share between threads.

    The newest block and the tip are read again with the first trip after `price_seconds`.
    """

    def __init__(self, nodes: Nodes, *, price_seconds: float) -> None:
        self._nodes, self._price_seconds = nodes, price_seconds
        self._price: _Price | None = None
        self._no_lens_until = self._no_simulation_until = 0.0

    def read(self, queries: Sequence[RelayQuery]) -> list[RelayState]:
        """Return the state of each query; see `ChainClient.read_relay_states`."""
        now = time.monotonic()
        groups = _parts(queries, _MOST_IN_LENS) if self._no_lens_until < now else []
        simulates = self._no_simulation_until < now
        price = self._price if self._price and now < self._price.valid_until else None
        calls = [] if price else list(_PRICE)
        calls += [_lens_call(group) for group in groups]
        calls += [_trial_call(query, simulates=simulates) for query in queries if query.calldata]
        replies = self._nodes.batch(calls, accepts=_accepts)
        if price is None:
            price, replies = self._new_price(replies[: len(_PRICE)], now), replies[len(_PRICE) :]
        contract_answers = self._answers(queries, groups, replies[: len(groups)], now)
        to_try = [query for query in queries if query.calldata]
        tried = iter(self._trials(to_try, replies[len(groups) :], now, simulates=simulates))
        return [
            _state(answers, next(tried) if query.calldata else _NOT_TRIED, price)
            for query, answers in zip(queries, contract_answers, strict=True)
        ]

    def _new_price(self, replies: Sequence[Any], now: float) -> _Price:
        block, history = replies
        price = _Price(rpc.head_of(block), _market_tip(history), now + self._price_seconds)
        self._price = price
        return price

    def _answers(
        self,
        queries: Sequence[RelayQuery],
        groups: Sequence[Sequence[RelayQuery]],
        readings: Sequence[Any],
        now: float,
    ) -> list[Sequence[bytes]]:
        """Return the contracts' answers for each query; those that no lens has read are read one by one."""
        answered: list[Sequence[bytes]] = []
        for group, reading in zip(groups, readings, strict=True):
            answers = _lens_answers(reading, len(group))
            if answers is None:
                break
            answered += answers
        unread = queries[len(answered) :]
        if unread:
            if groups:
                self._no_lens_until = now + _RETRY_SECONDS
            calls = [call for query in unread for call in _single_calls(query)]
            replies = self._nodes.batch(calls, accepts=node_errors.is_call_error)
            answered += [_single_answers(of_query) for of_query in _parts(replies, _QUESTIONS)]
        return answered

    def _trials(
        self, queries: Sequence[RelayQuery], replies: Sequence[Any], now: float, *, simulates: bool
    ) -> list[Trial]:
        """Return the simulations; a node that cannot simulate executes the calls by `eth_call`."""
        executed: dict[int, Any] = {}
        lacking = [
            place
            for place, (query, reply) in enumerate(zip(queries, replies, strict=True))
            if simulates and query.gas_limit is not None and _is_unknown_method(reply)
        ]
        if lacking:
            self._no_simulation_until = now + _RETRY_SECONDS
            calls = [_trial_call(queries[place], simulates=False) for place in lacking]
            again = self._nodes.batch(calls, accepts=node_errors.is_call_error)
            executed = dict(zip(lacking, again, strict=True))
        return [
            _trial(query, executed.get(place, reply), simulated=simulates and place not in executed)
            for place, (query, reply) in enumerate(zip(queries, replies, strict=True))
        ]


_PRICE: tuple[Call, ...] = (
    NEWEST_BLOCK,
    ("eth_feeHistory", [hex(_FEE_BLOCKS), _LATEST, [_FEE_PERCENTILE]]),
)


def _market_tip(history: Any) -> int:
    """
    Return the median tip of recent blocks, in wei per gas; 0 if they were nearly empty.

    Each block's median is weighted by the block's gas: to move the result, a sender must use as much gas as all
    others together, not one transaction in each block.
    """
    if not isinstance(history, dict | RpcError):
        raise rpc.unreadable()
    blocks = history if isinstance(history, dict) else {}
    rows, ratios = blocks.get("reward") or (), blocks.get("gasUsedRatio") or ()
    if not all(isinstance(ratio, int | float) for ratio in ratios):
        raise rpc.unreadable()
    filled = [(row[0], ratio) for row, ratio in zip(rows, ratios, strict=False) if row]
    tips = sorted(
        zip(rpc.quantities([tip for tip, _ in filled]), [ratio for _, ratio in filled], strict=True)
    )
    used = sum(ratio for _, ratio in tips)
    if used < _FEWEST_USED_BLOCKS:
        return 0
    passed = itertools.accumulate(ratio for _, ratio in tips)
    return next(tip for (tip, _), below in zip(tips, passed, strict=True) if 2 * below >= used)


class Question(NamedTuple):
    """A contract (0x-hex in any casing) and the calldata of a call to it; empty calldata reads its code."""

    address: str
    calldata: bytes = b""


_QUESTIONS = 6


def _questions(query: RelayQuery) -> list[Question]:
    permissions = contracts.GET_DATA + lsp6.permissions_key(query.controller)
    return [
        Question(query.profile),
        Question(query.key_manager),
        Question(query.profile, contracts.OWNER),
        Question(query.key_manager, contracts.TARGET),
        Question(query.profile, permissions),
        Question(
            query.key_manager,
            contracts.encode_get_nonce(controller=query.controller, channel=query.channel),
        ),
    ]


def _parts(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    return [items[at : at + size] for at in range(0, len(items), size)]


def _lens_answers(reply: Any, count: int) -> list[Sequence[bytes]] | None:
    """Return a lens's answers for `count` queries; None if the node does not support lenses."""
    if isinstance(reply, RpcError):
        return None
    answers = _read_answers(rpc.octets(reply), _QUESTIONS * count)
    return None if answers is None else _parts(answers, _QUESTIONS)


def _single_calls(query: RelayQuery) -> list[Call]:
    return [
        ("eth_call", [{"to": to, "data": "0x" + calldata.hex(), "gas": hex(READ_GAS)}, _LATEST])
        if calldata
        else ("eth_getCode", [to, _LATEST])
        for to, calldata in _questions(query)
    ]


def _single_answers(replies: Sequence[Any]) -> list[bytes]:
    """Return the contracts' answers in the form of a lens: no bytes from one that reverted."""
    codes = [code_answer(rpc.octets(reply)) for reply in replies[:2]]
    return codes + [b"" if isinstance(reply, RpcError) else rpc.octets(reply) for reply in replies[2:]]


def _state(answers: Sequence[bytes], trial: Trial, price: _Price) -> RelayState:
    profile_code, key_manager_code, *of_contracts = answers
    owner, target, permissions, relay_nonce = of_contracts
    return RelayState(
        profile_code_name=_code_name(profile_code),
        key_manager_code_name=_code_name(key_manager_code),
        owner=contracts.decode_address(owner),
        target=contracts.decode_address(target),
        permissions=contracts.decode_permissions(permissions),
        relay_nonce=contracts.decode_number(relay_nonce),
        head=price.head,
        market_tip_wei=price.market_tip_wei,
        trial=trial,
    )


def _trial_call(query: RelayQuery, *, simulates: bool) -> Call:
    gas = query.gas_cap if query.gas_limit is None else query.gas_limit
    fields = {
        "from": query.sender,
        "to": query.key_manager,
        "input": "0x" + query.calldata.hex(),
        "gas": hex(gas),
    }
    if query.gas_limit is None:
        return "eth_estimateGas", [fields, _LATEST]
    if simulates:
        return "eth_simulateV1", [{"blockStateCalls": [{"calls": [fields]}]}, _LATEST]
    return "eth_call", [fields, _LATEST]


def _trial(query: RelayQuery, reply: Any, *, simulated: bool) -> Trial:
    if isinstance(reply, RpcError):
        if reply.code == node_errors.INVALID_PARAMS:
            raise rpc.unreadable()
        return Trial(gas_limit=query.gas_limit, gas_used=None, revert=node_errors.revert_data(reply))
    if query.gas_limit is None:
        return Trial(gas_limit=rpc.quantity(reply), gas_used=None)
    if not simulated:
        # Only whether it returned matters, not what.
        rpc.octets(reply)
        return Trial(gas_limit=query.gas_limit)
    try:
        ((call,),) = (block["calls"] for block in reply)
        status, gas_used = int(call["status"], 16), int(call["gasUsed"], 16)
        revert = None if status == 1 else rpc.octets(call["returnData"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise rpc.unreadable() from error
    return Trial(gas_limit=query.gas_limit, gas_used=gas_used, revert=revert)


def _is_unknown_method(reply: Any) -> bool:
    return isinstance(reply, RpcError) and reply.code in {
        node_errors.METHOD_NOT_FOUND,
        node_errors.METHOD_NOT_SUPPORTED,
        node_errors.INVALID_PARAMS,
    }


def _accepts(error: RpcError) -> bool:
    """Also accept the errors of a node that does not support state overrides or simulations."""
    return error.code == node_errors.INVALID_PARAMS or node_errors.is_call_error(error)


# A lens is code that the node runs in one `eth_call`, to read several contracts in one call instead of many.
#
# The code is not on the chain: the call puts it at an unused address by a state override, which geth, erigon,
# nethermind, reth and anvil support. It answers a list of questions in order. A question is an address (20 bytes),
# the length of its calldata (2 bytes) and the calldata; one without calldata reads the contract's code.
#
# An answer is its length (32 bytes) and that many bytes. For a contract that reverts, uses up its 500,000 gas or
# returns more than 512 bytes, the length is 2^256 - 1 and no bytes follow. The answer for code has 128 bytes: its
# size, its hash, and its first 64 bytes, padded with zeros.
_LENS_ADDRESS = "0x00000000000000000000000000000000004c454e"
# For the questions of one query: four times their gas, and the lens's own.
_LENS_GAS = 5_000_000
# Queries in one lens; this saves a tenth of the node's time. They need less gas than the 50,000,000 that geth allows
# an `eth_call` by default.
_MOST_IN_LENS = 8
_WORD, _SHOWN_CODE_BYTES = 32, 64
_FAILED = 2**256 - 1

# The stack holds, from below: where the next question begins, where the next answer goes, and what a line adds.
_LENS_CODE = bytes.fromhex(
    "60 00 60 00"  #                          both begin at 0
    "5b 81 36 11 15 60 89 57"  #        0x04  no question left: 0x89
    "81 35 60 60 1c"  #                       the address
    "82 60 14 01 35 60 f0 1c"  #              the length of the calldata
    "80 15 60 56 57"  #                       none: 0x56
    "80 84 60 16 01 84 37"  #                 CALLDATACOPY to where the answer goes
    "60 00 60 00 82 85 85 62 07 a1 20 fa"  #  STATICCALL with 500,000 gas
    "3d 61 02 01 11 16 60 46 57"  #           succeeded, and no more than 512 bytes: 0x46
    "60 01 60 00 03 83 52 60 00 60 75 56"  #  failed: 2^256 - 1, no bytes, 0x75
    "5b 3d 83 52"  #                    0x46  the length of what was returned
    "3d 60 00 84 60 20 01 3e 3d 60 75 56"  #  RETURNDATACOPY behind it, 0x75
    "5b 60 80 83 52"  #                 0x56  128
    "81 3b 83 60 20 01 52"  #                 EXTCODESIZE
    "81 3f 83 60 40 01 52"  #                 EXTCODEHASH
    "60 40 60 00 84 60 60 01 84 3c 60 80"  #  EXTCODECOPY of 64 bytes
    "5b 83 01 60 20 01 92 50 90 50"  #  0x75  the next answer goes behind this one
    "60 16 01 82 01 91 50 60 04 56"  #        the next question begins behind this one; 0x04
    "5b 60 00 f3"  #                    0x89  RETURN all answers
)
_OVERRIDE = {_LENS_ADDRESS: {"code": "0x" + _LENS_CODE.hex()}}


def _lens_call(queries: Sequence[RelayQuery]) -> Call:
    """Return the call that reads the contracts of these queries."""
    data = b"".join(
        bytes.fromhex(address[2:]) + len(calldata).to_bytes(2, "big") + calldata
        for query in queries
        for address, calldata in _questions(query)
    )
    return "eth_call", [
        {"to": _LENS_ADDRESS, "data": "0x" + data.hex(), "gas": hex(_LENS_GAS * len(queries))},
        _LATEST,
        _OVERRIDE,
    ]


def _read_answers(returned: bytes, count: int) -> list[bytes] | None:
    """Return each question's answer, empty if its contract failed; None if the bytes are not a lens's."""
    answers: list[bytes] = []
    at = 0
    while at < len(returned):
        length = int.from_bytes(returned[at : at + _WORD], "big")
        at += _WORD
        if length == _FAILED:
            length = 0
        answers.append(returned[at : at + length])
        at += length
    return answers if len(answers) == count and at == len(returned) else None


def code_answer(code: bytes) -> bytes:
    """Return a lens's answer for a contract with this code."""
    code_hash = keccak(code) if code else bytes(_WORD)
    return (
        len(code).to_bytes(_WORD, "big")
        + code_hash
        + code[:_SHOWN_CODE_BYTES].ljust(_SHOWN_CODE_BYTES, b"\0")
    )


def _code_name(answer: bytes) -> str:
    """Return the name of a contract's code as `signer.contracts.code_name` does; empty without code."""
    size = int.from_bytes(answer[:_WORD], "big")
    if not size:
        return ""
    code = answer[2 * _WORD : 2 * _WORD + size]
    implementation = implementation_of(code) if size <= _SHOWN_CODE_BYTES else None
    return implementation or "0x" + answer[_WORD : 2 * _WORD].hex()
