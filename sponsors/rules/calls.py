"""
Decodes a relay call: every contract and function that its payload calls, also in batches and nested calls.

Policies pay for listed contracts and functions, so a call must not be able to hide one. Batches of the profile (LSP-0)
and of its key manager (LSP-6) are decoded at every level. If the payload calls these functions on another contract,
such as another profile, both the function and the calls inside it are actions. A payload is refused if any part of it
does not decode.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from gateway.chain.calldata import SELECTOR_BYTES, Function, NotCanonical
from gateway.common.fields import checksum

# The contract of an action if the profile calls its own function, such as `setData`.
PROFILE = "profile"
# Actions without a contract that a policy can list: new contracts, and other contracts' code run as the profile.
DEPLOYMENT, DELEGATECALL = "deployment", "delegatecall"
# The selector of a transfer of LYX without data.
NO_FUNCTION = b""

_CALL, _CREATE, _CREATE2, _STATICCALL, _DELEGATECALL = range(5)
_MOST_LEVELS = 8


class Action(NamedTuple):
    """
    One contract and function that the call calls.

    `contract` is an EIP-55 address, or one of PROFILE, DEPLOYMENT and DELEGATECALL. `function` is the 4-byte selector,
    or NO_FUNCTION.
    """

    contract: str
    function: bytes


class Unreadable(Exception):
    """Some part of the payload does not decode, or batches are nested too deeply."""


class _Inner(NamedTuple):
    """One call inside another: its ERC-725X operation, its target (None: the acting profile), and its data."""

    operation: int
    target: int | None
    data: bytes


def _execute(operation: int, target: int, _: int, data: bytes) -> list[_Inner]:
    return [_Inner(operation, target, data)]


def _execute_batch(*arrays: Sequence[Any]) -> list[_Inner]:
    operations, targets, _, datas = _of_one_length(arrays)
    return [_Inner(*each) for each in zip(operations, targets, datas, strict=True)]


def _payloads(*arguments: Any) -> list[_Inner]:
    """Return the payloads for the profile: the last argument of the key manager's functions and of `batchCalls`."""
    arrays = [each for each in arguments if isinstance(each, list)]
    _of_one_length(arrays)
    payloads = arguments[-1] if arrays else [arguments[-1]]
    return [_Inner(_CALL, None, payload) for payload in payloads]


def _of_one_length(arrays: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
    if len({len(each) for each in arrays}) > 1:
        raise NotCanonical
    return arrays


class _Opener(NamedTuple):
    """A function that makes other calls; the profile implements it if `of_profile`, otherwise the key manager."""

    function: Function
    of_profile: bool
    inner_calls: Callable[..., list[_Inner]]


_OPENERS = {
    opener.function.selector: opener
    for opener in (
        _Opener(Function("execute(uint256,address,uint256,bytes)"), True, _execute),
        _Opener(Function("executeBatch(uint256[],address[],uint256[],bytes[])"), True, _execute_batch),
        _Opener(Function("batchCalls(bytes[])"), True, _payloads),
        _Opener(Function("execute(bytes)"), False, _payloads),
        _Opener(Function("executeBatch(uint256[],bytes[])"), False, _payloads),
        _Opener(Function("executeRelayCall(bytes,uint256,uint256,bytes)"), False, _payloads),
        _Opener(
            Function("executeRelayCallBatch(bytes[],uint256[],uint256[],uint256[],bytes[])"), False, _payloads
        ),
    )
}


def actions_of(payload: bytes, *, profile: str, key_manager: str) -> tuple[Action, ...]:
    """
    Return every contract and function that the payload calls, each once, in order.

    Raises:
        Unreadable: some part of the payload does not decode.
    """
    reader = _Reader(profile=checksum(profile), key_manager=checksum(key_manager))
    try:
        return tuple(dict.fromkeys(reader.read(reader.profile, payload, level=0)))
    except NotCanonical as error:
        raise Unreadable from error


class _Reader:
    def __init__(self, *, profile: str, key_manager: str) -> None:
        self.profile = profile
        self._key_manager = key_manager

    def read(self, contract: str, data: bytes, *, level: int) -> Iterator[Action]:
        """Yield the actions of calling the contract with this data."""
        if 0 < len(data) < SELECTOR_BYTES or level > _MOST_LEVELS:
            raise Unreadable
        selector = data[:SELECTOR_BYTES]
        opener = _OPENERS.get(selector)
        # On any contract but the one that implements it, the function may do more: an LSP-17 extension may handle it.
        if opener is None or contract != (self.profile if opener.of_profile else self._key_manager):
            yield Action(PROFILE if contract == self.profile else contract, selector)
        if opener is not None:
            # The profile makes the calls in the key manager's payloads; any other contract makes those in its own.
            acting = self.profile if contract == self._key_manager else contract
            for inner in opener.inner_calls(*opener.function.arguments(data)):
                yield from self._inner(inner, acting, level=level + 1)

    def _inner(self, inner: _Inner, acting: str, *, level: int) -> Iterator[Action]:
        if inner.operation in {_CALL, _STATICCALL}:
            target = acting if inner.target is None else _address(inner.target)
            yield from self.read(target, inner.data, level=level)
        elif inner.operation in {_CREATE, _CREATE2}:
            yield Action(DEPLOYMENT, NO_FUNCTION)
        elif inner.operation == _DELEGATECALL:
            yield Action(DELEGATECALL, NO_FUNCTION)
        else:
            raise Unreadable


def _address(number: int) -> str:
    return checksum(f"0x{number:040x}")
