"""
Reads the chain's state for many relay calls in one round trip.

The batch contains lenses, each of which reads the contracts of up to eight calls, and a simulation of each call: the
node executes the transaction that would be signed at its gas limit, or estimates the gas if no limit is known. The
simulation is separate, because a lens that executed the call would warm storage and lower its gas. Where a query asks
for it, the call is simulated at the cap as well, to see whether it has the same effects there. For nodes without state
overrides or `eth_simulateV1`, the reader uses older methods, which cost more.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from eth_hash.auto import keccak

from gateway.chain import contracts, l1_reads, lsp6, node_errors, responses
from gateway.chain.node import Node
from gateway.chain.nodes import Nodes
from gateway.chain.rpc import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    METHOD_NOT_SUPPORTED,
    Call,
    MalformedResponse,
    OversizedError,
    RpcError,
)
from gateway.chain.types import READ_GAS, Head, RelayQuery, RelayState, Trial
from signer.contracts import implementation_of

_LATEST = "latest"
_FEE_BLOCKS, _FEE_PERCENTILE = 10, 50
_UNKNOWN_METHOD = frozenset({METHOD_NOT_FOUND, METHOD_NOT_SUPPORTED, INVALID_PARAMS})
_NOT_TRIED = Trial(gas_limit=None)
# How long to use the older methods after a node has reported a missing method.
_RETRY_SECONDS = 600.0
Item = TypeVar("Item")


class _Price(NamedTuple):
    """The cached newest block and tip, and their expiry on the monotonic clock."""

    head: Head
    market_tip_wei: int
    valid_until: float


class RelayStateReader:
    """
    Reads the states of relay calls. Safe to share between threads.

    The newest block and the tip are read again with the first batch after `price_seconds`.
    """

    def __init__(self, nodes: Nodes, *, price_seconds: float, with_l1: bool = False) -> None:
        self._nodes, self._price_seconds = nodes, price_seconds
        self._price_calls = [*l1_reads.head_calls(with_l1=with_l1), _MARKET_TIP]
        self._price: _Price | None = None
        self._no_lens_until = self._no_simulation_until = 0.0

    def read(self, queries: Sequence[RelayQuery]) -> list[RelayState]:
        """Return the state of each query; see `ChainClient.read_relay_states`."""
        return self._nodes.read(lambda node: self._states(node, queries))

    def _states(self, node: Node, queries: Sequence[RelayQuery]) -> list[RelayState]:
        now = time.monotonic()
        groups = _parts(queries, _MOST_IN_LENS) if self._no_lens_until < now else []
        simulates = self._no_simulation_until < now
        price = self._price if self._price and now < self._price.valid_until else None
        calls = [] if price else list(self._price_calls)
        calls += [_lens_call(group) for group in groups]
        to_try = [query for query in queries if query.calldata]
        to_compare = [query for query in to_try if simulates and _compares(query)]
        calls += [_trial_call(query, query.gas_limit, simulates=simulates) for query in to_try]
        calls += [_trial_call(query, query.gas_cap, simulates=True) for query in to_compare]
        values = node.batch(calls)
        if price is None:
            count = len(self._price_calls)
            price, values = self._new_price(values[:count], now), values[count:]
        contract_results = self._answers(node, queries, groups, values[: len(groups)], now)
        values = values[len(groups) :]
        trials = self._trials(node, to_try, values[: len(to_try)], now, simulates=simulates)
        others = values[len(to_try) :]
        if None in others:
            self._no_simulation_until = now + _RETRY_SECONDS
        tried = iter(_compared(to_try, trials, others))
        return [
            _state(of_query, next(tried) if query.calldata else _NOT_TRIED, price, node.name)
            for query, of_query in zip(queries, contract_results, strict=True)
        ]

    def _new_price(self, values: Sequence[Any], now: float) -> _Price:
        *of_head, market_tip_wei = values
        price = _Price(l1_reads.head(of_head), market_tip_wei, now + self._price_seconds)
        self._price = price
        return price

    def _answers(
        self,
        node: Node,
        queries: Sequence[RelayQuery],
        groups: Sequence[Sequence[RelayQuery]],
        readings: Sequence[list[Sequence[bytes]] | None],
        now: float,
    ) -> list[Sequence[bytes]]:
        """Return the contracts' results for each query; read those one by one that no lens has read."""
        answered: list[Sequence[bytes]] = []
        for of_group in readings:
            if of_group is None:
                break
            answered += of_group
        unread = queries[len(answered) :]
        if unread:
            if groups:
                self._no_lens_until = now + _RETRY_SECONDS
            calls = [call for query in unread for call in _single_calls(query)]
            answered += _parts(node.batch(calls), _QUESTIONS)
        return answered

    def _trials(
        self, node: Node, queries: Sequence[RelayQuery], trials: Sequence[Any], now: float, *, simulates: bool
    ) -> list[Trial]:
        """Return the simulations; use `eth_call` with a node that cannot simulate."""
        trials = list(trials)
        lacking = [place for place, trial in enumerate(trials) if trial is None]
        if lacking:
            self._no_simulation_until = now + _RETRY_SECONDS
            calls = [
                _trial_call(queries[place], queries[place].gas_limit, simulates=False) for place in lacking
            ]
            for place, trial in zip(lacking, node.batch(calls), strict=True):
                trials[place] = trial
        return trials


def _accepts(error: RpcError) -> bool:
    """Return whether the error is a valid response; so are errors of nodes without state overrides or simulations."""
    return error.code == INVALID_PARAMS or node_errors.is_call_error(error)


_MARKET_TIP = Call(
    "eth_feeHistory", [hex(_FEE_BLOCKS), _LATEST, [_FEE_PERCENTILE]], responses.market_tip, _accepts
)


class Question(NamedTuple):
    """A contract (0x-hex in any casing) and the calldata to call it with; empty calldata reads its code."""

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


def _single_calls(query: RelayQuery) -> list[Call]:
    return [_single_call(*question) for question in _questions(query)]


def _single_call(to: str, calldata: bytes) -> Call:
    """Return the call whose value is a contract's result as a lens returns it: no bytes if it reverted."""
    if not calldata:
        return Call("eth_getCode", [to, _LATEST], _code_of, max_bytes=responses.CODE_BYTES)
    fields = {"to": to, "data": "0x" + calldata.hex(), "gas": hex(READ_GAS)}
    return Call(
        "eth_call",
        [fields, _LATEST],
        responses.returned,
        node_errors.is_call_error,
        is_sized_by_contract=True,
    )


def _code_of(response: Any) -> bytes:
    return code_result(responses.octets(response))


def _state(of_query: Sequence[bytes], trial: Trial, price: _Price, node: str) -> RelayState:
    profile_code, key_manager_code, *of_contracts = of_query
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
        node=node,
    )


def _compared(
    queries: Sequence[RelayQuery], trials: Sequence[Trial], at_cap: Sequence[Trial | None]
) -> list[Trial]:
    """Return each query's trial, compared with the one at the cap, which nodes without simulations lack."""
    others = iter(at_cap)
    return [
        trial.compared_with(next(others, None)) if _compares(query) else trial
        for query, trial in zip(queries, trials, strict=True)
    ]


def _compares(query: RelayQuery) -> bool:
    """Return whether the call is simulated at the cap as well, because its limit is a lower one."""
    return query.compares and (query.gas_limit is None or query.gas_limit < query.gas_cap)


def _trial_call(query: RelayQuery, gas_limit: int | None, *, simulates: bool) -> Call:
    fields = {
        "from": query.sender,
        "to": query.key_manager,
        "input": "0x" + query.calldata.hex(),
        "gas": hex(query.gas_cap if gas_limit is None else gas_limit),
    }
    if gas_limit is None:
        return _executing("eth_estimateGas", [fields, _LATEST], _estimated)
    if simulates:
        simulation = {"blockStateCalls": [{"calls": [fields]}]}
        return _executing("eth_simulateV1", [simulation, _LATEST], partial(_simulated, gas_limit))
    return _executing("eth_call", [fields, _LATEST], partial(_executed, gas_limit))


def _executing(method: str, params: list[Any], read: Callable[[Any], Trial | None]) -> Call:
    return Call(method, params, read, _accepts, max_bytes=responses.TRIAL_BYTES, is_sized_by_contract=True)


def _estimated(response: Any) -> Trial:
    gas = responses.gas_or_error(response)
    return _failed(None, gas) if isinstance(gas, RpcError) else Trial(gas)


def _executed(gas_limit: int, response: Any) -> Trial:
    # Only success matters here, not the return data.
    returned = responses.returned_or_error(response)
    return _failed(gas_limit, returned) if isinstance(returned, RpcError) else Trial(gas_limit)


def _simulated(gas_limit: int, response: Any) -> Trial | None:
    """Return the simulation; None if the node cannot simulate."""
    if isinstance(response, RpcError) and response.code in _UNKNOWN_METHOD:
        return None
    simulated = responses.simulated(response)
    if isinstance(simulated, RpcError):
        return _failed(gas_limit, simulated)
    return Trial(
        gas_limit,
        simulated.gas_used,
        simulated.revert,
        simulated.logs,
        most_gas_used=simulated.most_gas_used,
    )


def _failed(gas_limit: int | None, error: RpcError) -> Trial:
    if error.code == INVALID_PARAMS:
        raise MalformedResponse("the node refuses the parameters")
    return Trial(
        gas_limit, revert=node_errors.revert_data(error), is_oversized=isinstance(error, OversizedError)
    )


# A lens is code that the node runs in a single `eth_call` to read several contracts.
#
# The code is not on the chain: the call puts it at an unused address by a state override, which geth, erigon,
# nethermind, reth and anvil support. It returns a list of questions in order. A question is an address (20 bytes),
# the length of its calldata (2 bytes) and the calldata; one without calldata reads the contract's code.
#
# A result is its length (32 bytes) and that many bytes. For a contract that reverts, uses up its 500,000 gas or
# returns more than 512 bytes, the length is 2^256 - 1 and no bytes follow. The result for code has 128 bytes: its
# size, its hash, and its first 64 bytes, padded with zeros.
_LENS_ADDRESS = "0x00000000000000000000000000000000004c454e"
# For the questions of one query. Four of them are calls, which may use 500,000 gas each.
_LENS_GAS = 5_000_000
# Queries in one lens; this saves a tenth of the node's time. They need less gas than the 50,000,000 that geth allows
# an `eth_call` by default.
_MOST_IN_LENS = 8
_WORD, _SHOWN_CODE_BYTES = 32, 64
_FAILED = 2**256 - 1

# The stack has, from the bottom: the offset of the next question, that of the next result, and what each line adds.
_LENS_CODE = bytes.fromhex(
    "60 00 60 00"  #                          both begin at 0
    "5b 81 36 11 15 60 89 57"  #        0x04  no question left: 0x89
    "81 35 60 60 1c"  #                       the address
    "82 60 14 01 35 60 f0 1c"  #              the length of the calldata
    "80 15 60 56 57"  #                       none: 0x56
    "80 84 60 16 01 84 37"  #                 CALLDATACOPY to where the result goes
    "60 00 60 00 82 85 85 62 07 a1 20 fa"  #  STATICCALL with 500,000 gas
    "3d 61 02 01 11 16 60 46 57"  #           succeeded, and no more than 512 bytes: 0x46
    "60 01 60 00 03 83 52 60 00 60 75 56"  #  failed: 2^256 - 1, no bytes, 0x75
    "5b 3d 83 52"  #                    0x46  the length of what was returned
    "3d 60 00 84 60 20 01 3e 3d 60 75 56"  #  RETURNDATACOPY behind it, 0x75
    "5b 60 80 83 52"  #                 0x56  128
    "81 3b 83 60 20 01 52"  #                 EXTCODESIZE
    "81 3f 83 60 40 01 52"  #                 EXTCODEHASH
    "60 40 60 00 84 60 60 01 84 3c 60 80"  #  EXTCODECOPY of 64 bytes
    "5b 83 01 60 20 01 92 50 90 50"  #  0x75  the next result goes behind this one
    "60 16 01 82 01 91 50 60 04 56"  #        the next question begins behind this one; 0x04
    "5b 60 00 f3"  #                    0x89  RETURN all results
)
_OVERRIDE = {_LENS_ADDRESS: {"code": "0x" + _LENS_CODE.hex()}}


def _lens_call(queries: Sequence[RelayQuery]) -> Call:
    """Return the call that reads the contracts of these queries."""
    data = b"".join(
        bytes.fromhex(address[2:]) + len(calldata).to_bytes(2, "big") + calldata
        for query in queries
        for address, calldata in _questions(query)
    )
    fields = {"to": _LENS_ADDRESS, "data": "0x" + data.hex(), "gas": hex(_LENS_GAS * len(queries))}
    read = partial(_lens_results, _QUESTIONS * len(queries))
    return Call("eth_call", [fields, _LATEST, _OVERRIDE], read, _accepts)


def _lens_results(count: int, response: Any) -> list[Sequence[bytes]] | None:
    """Return a lens's results for each query; None if the node does not support lenses."""
    if isinstance(response, RpcError):
        return None
    of_questions = _read_results(responses.octets(response), count)
    return None if of_questions is None else _parts(of_questions, _QUESTIONS)


def _read_results(returned: bytes, count: int) -> list[bytes] | None:
    """Return each question's result, empty if its contract failed; None if the bytes are not a lens's."""
    found: list[bytes] = []
    at = 0
    while at < len(returned):
        length = int.from_bytes(returned[at : at + _WORD], "big")
        at += _WORD
        if length == _FAILED:
            length = 0
        found.append(returned[at : at + length])
        at += length
    return found if len(found) == count and at == len(returned) else None


def code_result(code: bytes) -> bytes:
    """Return a lens's result for a contract with this code."""
    code_hash = keccak(code) if code else bytes(_WORD)
    return (
        len(code).to_bytes(_WORD, "big")
        + code_hash
        + code[:_SHOWN_CODE_BYTES].ljust(_SHOWN_CODE_BYTES, b"\0")
    )


def _code_name(response: bytes) -> str:
    """Return the name of a contract's code as `signer.contracts.code_name` does; empty without code."""
    size = int.from_bytes(response[:_WORD], "big")
    if not size:
        return ""
    code = response[2 * _WORD : 2 * _WORD + size]
    implementation = implementation_of(code) if size <= _SHOWN_CODE_BYTES else None
    return implementation or "0x" + response[_WORD : 2 * _WORD].hex()
