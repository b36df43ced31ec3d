"""Every contract and function that a payload reaches is found, however it is nested, or the payload is unreadable."""

import secrets
from collections.abc import Callable, Sequence

import pytest
from eth_abi.abi import encode
from eth_utils.abi import function_signature_to_4byte_selector
from hypothesis import given
from hypothesis import strategies as st

from sponsors.rules.calls import (
    DELEGATECALL,
    DEPLOYMENT,
    NO_FUNCTION,
    PROFILE,
    Action,
    Unreadable,
    actions_of,
)
from tests.factories import random_address
from tests.fakes.profiles import EXECUTE, SET_DATA, set_data, transfer
from tests.sponsors.rules.rows import random_function

_PROFILE, _KEY_MANAGER = random_address(), random_address()
_Call = tuple[str, bytes]


def _encoded(signature: str, *values: object) -> bytes:
    types = signature.partition("(")[2].rstrip(")").split(",")
    return function_signature_to_4byte_selector(signature) + encode(types, values)


def _execute(to: str, data: bytes, operation: int = 0) -> bytes:
    return _encoded("execute(uint256,address,uint256,bytes)", operation, to, secrets.randbelow(99), data)


def _execute_batch(calls: Sequence[_Call], operation: int = 0) -> bytes:
    targets, datas = zip(*calls, strict=True)
    size = len(calls)
    return _encoded(
        "executeBatch(uint256[],address[],uint256[],bytes[])", [operation] * size, targets, [0] * size, datas
    )


def _by_key_manager(payload: bytes) -> bytes:
    return _execute(_KEY_MANAGER, _encoded("execute(bytes)", payload))


def _by_key_managers_batch(*payloads: bytes) -> bytes:
    batch = _encoded("executeBatch(uint256[],bytes[])", [0] * len(payloads), payloads)
    return _execute(_KEY_MANAGER, batch)


def _by_relay_call(payload: bytes) -> bytes:
    call = _encoded("executeRelayCall(bytes,uint256,uint256,bytes)", b"s" * 65, 1, 0, payload)
    return _execute(_KEY_MANAGER, call)


def _by_relay_batch(*payloads: bytes) -> bytes:
    size = len(payloads)
    batch = _encoded(
        "executeRelayCallBatch(bytes[],uint256[],uint256[],uint256[],bytes[])",
        [b"s" * 65] * size,
        *[[0] * size] * 3,
        payloads,
    )
    return _execute(_KEY_MANAGER, batch)


def _by_profile(payload: bytes) -> bytes:
    return _execute(_PROFILE, payload)


def _by_batch_calls(payload: bytes) -> bytes:
    return _encoded("batchCalls(bytes[])", [payload, payload])


_NESTINGS: list[Callable[[bytes], bytes]] = [
    _by_key_manager,
    _by_key_managers_batch,
    _by_relay_call,
    _by_relay_batch,
    _by_profile,
    _by_batch_calls,
]


def _actions(payload: bytes) -> tuple[Action, ...]:
    return actions_of(payload, profile=_PROFILE, key_manager=_KEY_MANAGER)


def _random_call() -> _Call:
    return random_address(), random_function() + secrets.token_bytes(secrets.randbelow(99))


def test_a_call_of_a_contract_is_its_address_and_function() -> None:
    to, data = _random_call()

    assert _actions(transfer(to, 5, data)) == (Action(to, data[:4]),)
    assert _actions(_execute(to.lower(), data, operation=3)) == (Action(to, data[:4]),)


def test_a_transfer_of_lyx_has_no_function() -> None:
    to = random_address()

    assert _actions(transfer(to)) == (Action(to, NO_FUNCTION),)


def test_a_call_of_the_profile_to_itself_is_an_action_of_the_profile() -> None:
    function = random_function()

    assert _actions(set_data()) == (Action(PROFILE, SET_DATA),)
    assert _actions(_by_profile(set_data())) == (Action(PROFILE, SET_DATA),)
    assert _actions(function) == (Action(PROFILE, function),)
    assert _actions(b"") == (Action(PROFILE, NO_FUNCTION),)


def test_a_batch_is_all_its_targets_each_once() -> None:
    calls = [_random_call() for _ in range(7)]

    assert _actions(_execute_batch([*calls, *calls])) == tuple(Action(to, data[:4]) for to, data in calls)


@pytest.mark.parametrize("outer", _NESTINGS)
@pytest.mark.parametrize("middle", _NESTINGS)
def test_targets_are_found_inside_two_levels_of_nesting(
    outer: Callable[[bytes], bytes], middle: Callable[[bytes], bytes]
) -> None:
    first, second = _random_call(), _random_call()

    found = _actions(outer(middle(_execute_batch([first, second]))))

    assert found == (Action(first[0], first[1][:4]), Action(second[0], second[1][:4]))


@pytest.mark.parametrize("nest", _NESTINGS)
def test_an_inner_part_that_does_not_decode_makes_the_payload_unreadable(
    nest: Callable[[bytes], bytes],
) -> None:
    sound = _execute(*_random_call())

    for broken in (sound[:-1], sound + bytes(32), sound[:4], b"\x01\x02\x03"):
        with pytest.raises(Unreadable):
            _actions(nest(broken))


def test_deployments_and_delegate_calls_have_contracts_that_no_policy_lists() -> None:
    to, data = _random_call()

    assert _actions(_execute(to, data, operation=1)) == (Action(DEPLOYMENT, NO_FUNCTION),)
    assert _actions(_execute(to, data, operation=2)) == (Action(DEPLOYMENT, NO_FUNCTION),)
    assert _actions(_execute(to, data, operation=4)) == (Action(DELEGATECALL, NO_FUNCTION),)
    assert _actions(_execute_batch([(to, data)], operation=4)) == (Action(DELEGATECALL, NO_FUNCTION),)
    with pytest.raises(Unreadable):
        _actions(_execute(to, data, operation=5))


def test_execution_by_another_profile_and_its_inner_call_are_two_actions() -> None:
    other, (to, data) = random_address(), _random_call()
    inner = _execute(to, data)

    assert _actions(_execute(other, inner)) == (Action(other, inner[:4]), Action(to, data[:4]))


def test_a_call_of_another_key_manager_and_its_profiles_call_are_two_actions() -> None:
    other, (to, data) = random_address(), _random_call()
    inner = _encoded("executeBatch(uint256[],bytes[])", [0, 0], [_execute(to, data), set_data()])

    assert _actions(_execute(other, inner)) == (
        Action(other, inner[:4]),
        Action(other, EXECUTE),
        Action(to, data[:4]),
        Action(other, SET_DATA),
    )


def test_the_key_managers_functions_on_the_profile_may_be_those_of_an_extension() -> None:
    to, data = _random_call()
    payload = _encoded("execute(bytes)", _execute(to, data))

    assert _actions(payload) == (Action(PROFILE, payload[:4]), Action(to, data[:4]))


def test_arrays_of_different_lengths_are_unreadable() -> None:
    types = "executeBatch(uint256[],address[],uint256[],bytes[])"
    to, data = _random_call()

    for operations, targets, datas in (([0, 0], [to], [data]), ([0], [to, to], [data]), ([0], [to], [])):
        with pytest.raises(Unreadable):
            _actions(_encoded(types, operations, targets, [0], datas))


def test_nesting_is_read_to_eight_levels() -> None:
    to, data = _random_call()
    payload = _execute(to, data)
    for _ in range(7):
        payload = _by_profile(payload)

    assert _actions(payload) == (Action(to, data[:4]),)
    with pytest.raises(Unreadable):
        _actions(_by_profile(payload))


def test_bytes_that_a_contract_would_read_in_another_way_are_unreadable() -> None:
    """Another offset, dirty padding and dirty addresses are not canonical; contracts may still read them."""
    payload = transfer(random_address(), 1, random_function())
    offset, address, padding = 4 + 3 * 32 + 31, 4 + 32, len(payload) - 1

    for place in (offset, address, padding):
        changed = bytearray(payload)
        changed[place] ^= 0x20
        with pytest.raises(Unreadable):
            _actions(bytes(changed))


@given(
    st.binary(max_size=400),
    st.sampled_from(["execute(uint256,address,uint256,bytes)", "executeBatch(uint256[],bytes[])", "f()"]),
)
def test_no_payload_makes_the_reader_fail_in_another_way(body: bytes, signature: str) -> None:
    try:
        found = _actions(function_signature_to_4byte_selector(signature) + body)
    except Unreadable:
        return
    assert found


@given(st.integers(0, 3), st.binary(max_size=200), st.integers(0, 2**160 - 1))
def test_calldata_encoded_by_a_library_is_decoded(size: int, data: bytes, number: int) -> None:
    to = f"0x{number:040x}"
    calls = [(to, bytes(4) + data)] * (size + 1)

    assert [(each.contract.lower(), each.function) for each in _actions(_execute_batch(calls))] == [
        (to, bytes(4))
    ]
