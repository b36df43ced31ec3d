"""Malformed data of new profiles over HTTP: each is refused by its name, and leaves no trace."""

import secrets
from collections.abc import Callable

import pytest
from eth_abi.abi import encode as abi_encode
from pytest_django import Settings

from gateway.chain import lsp23
from gateway.chain.lsp3 import PROFILE_KEY
from gateway.chain.lsp6 import ALL_PERMISSIONS, permissions_key
from relay.models import RelayTransaction
from signer import deployments
from signer.deployments import Deployment
from tests.gateway.chain.test_lsp23 import CONTROLLER, MALFORMED, a_salt, a_uri, an_element, entries_of
from tests.relay.api.conftest import Wallet
from tests.relay.api.test_profiles import PATH, refused, server_of
from tests.relay.creating import for_profiles
from tests.sponsors.sponsorships import make_sponsor

pytestmark = pytest.mark.django_db
Change = Callable[[bytes], bytes]
# The controllers' data begin with the offsets of both arrays, the number of keys and the keys.
_KEYS = len(entries_of([CONTROLLER], a_uri()))
_VALUES_AT = 32 * (3 + _KEYS)
_FIRST_VALUE_AT = _VALUES_AT + 32 * (1 + _KEYS)
_MOST = 2**256 - 1


@pytest.fixture
def server(relayers: object, trusted: None, settings: Settings) -> Wallet:
    """The server of a sponsor that pays for new profiles. Its key may ask for more of them than the tests do."""
    settings.SPONSOR_CREATE_RATE = "1000/minute"
    sponsor = make_sponsor()
    for_profiles(sponsor)
    return server_of(sponsor)


def word(at: int, number: int) -> Change:
    """Return what writes a number into the word at this position."""
    return lambda data: data[:at] + number.to_bytes(32, "big") + data[at + 32 :]


def values_of_length(length: int) -> Change:
    """Return what states another length of the first value, and leaves its bytes."""
    return word(_FIRST_VALUE_AT, length)


def encoded(keys_type: str, values_type: str, *, keys: int = _KEYS, values: int = _KEYS) -> Change:
    """Return what encodes the same entries as other types, or with other numbers of keys and values."""

    def change(data: bytes) -> bytes:
        entries = deployments.decode_entries(data) or []
        columns = [key for key, _ in entries][:keys], [value for _, value in entries][:values]
        return abi_encode([keys_type, values_type], columns)

    return change


def _whole_call(data: bytes) -> bytes:
    """Return the whole call of the factory, where its data are asked for."""
    deployment = Deployment(a_salt(), deployments.PROFILE, deployments.KEY_MANAGER, deployments.MODULE, data)
    return deployments.encode(deployment)


def _overlapping(data: bytes) -> bytes:
    """Return data whose second value is the first one, by an offset that points to the same bytes."""
    first = data[_VALUES_AT + 32 : _VALUES_AT + 64]
    return data[: _VALUES_AT + 64] + first + data[_VALUES_AT + 96 :]


def _dirty_padding(data: bytes) -> bytes:
    """Return data whose first value of 16 bytes is followed by something else than zeros."""
    at = _FIRST_VALUE_AT + 32 + 16
    return data[:at] + b"\1" + data[at + 1 :]


def _with_gap(data: bytes) -> bytes:
    """Return data with an unused word between keys and values, and offsets that skip it."""
    return word(32, _VALUES_AT + 32)(data[:_VALUES_AT] + bytes(32) + data[_VALUES_AT:])


def _values_first(data: bytes) -> bytes:
    """Return data whose values are before the keys."""
    keys, values = data[64:_VALUES_AT], data[_VALUES_AT:]
    head = (64 + len(values)).to_bytes(32, "big") + (64).to_bytes(32, "big")
    return head + values + keys


# What is wrong with the encoding. A decoder that follows offsets would read something from many of them.
ENCODINGS: dict[str, Change] = {
    "one byte": lambda _: b"\0",
    "random bytes": lambda data: secrets.token_bytes(len(data)),
    "zeros": lambda data: bytes(len(data)),
    "all bits": lambda data: b"\xff" * len(data),
    "a head without arrays": lambda data: data[:64],
    "no values": lambda data: data[:_VALUES_AT],
    "one byte too few": lambda data: data[:-1],
    "one word too few": lambda data: data[:-32],
    "one byte behind the end": lambda data: data + b"\0",
    "one word behind the end": lambda data: data + bytes(32),
    "the same data again behind the end": lambda data: data + data,
    "a word before the beginning": lambda data: (32).to_bytes(32, "big") + data,
    "the whole call of the factory": _whole_call,
    "the selector of setDataBatch in front": lambda data: bytes.fromhex("97902421") + data,
    "keys that begin in the head": word(0, 0),
    "keys at an odd offset": word(0, 65),
    "keys behind the end": word(0, 10_000),
    "keys at the highest offset": word(0, _MOST),
    "values that begin in the head": word(32, 0),
    "values where the keys are": word(32, 64),
    "values behind the end": word(32, 10_000),
    "values at the highest offset": word(32, _MOST),
    "no keys for the values": word(64, 0),
    "a key less than values": word(64, _KEYS - 1),
    "a key more than values": word(64, _KEYS + 1),
    "more keys than bytes": word(64, _MOST),
    "no values for the keys": word(_VALUES_AT, 0),
    "a value less than keys": word(_VALUES_AT, _KEYS - 1),
    "a value more than keys": word(_VALUES_AT, _KEYS + 1),
    "more values than bytes": word(_VALUES_AT, _MOST),
    "a value at the beginning": word(_VALUES_AT + 32, 0),
    "a value behind the end": word(_VALUES_AT + 32, 10_000),
    "a value at the highest offset": word(_VALUES_AT + 32, _MOST),
    "two values of the same bytes": _overlapping,
    "a value longer than its bytes": values_of_length(33),
    "a value longer than the data": values_of_length(10_000),
    "a value of the highest length": values_of_length(_MOST),
    "padding that is not zero": _dirty_padding,
    "an unused word between keys and values": _with_gap,
    "values before keys": _values_first,
    "keys of any length": encoded("bytes[]", "bytes[]"),
    "values as text in keys of any length": encoded("bytes[]", "bytes[]", keys=1, values=1),
    "a missing last value": encoded("bytes32[]", "bytes[]", values=_KEYS - 1),
    "a missing last key": encoded("bytes32[]", "bytes[]", keys=_KEYS - 1),
}


def test_every_malformed_entry_is_refused_over_http_by_its_rule_and_key(server: Wallet) -> None:
    assert len(MALFORMED) >= 60
    for name, change, reason, key in MALFORMED:
        entries = change(entries_of([CONTROLLER], a_uri()))
        place = None if key is None else [one for one, _ in entries].index(key)
        problem = send(server, deployments.encode_entries(entries))
        wanted = (reason, place, None if key is None else "0x" + key.hex())
        assert named(problem) == wanted, name


def test_every_other_encoding_is_refused_over_http_as_a_whole(server: Wallet) -> None:
    assert len(ENCODINGS) >= 40
    for name, change in ENCODINGS.items():
        good = deployments.encode_entries(entries_of([CONTROLLER], a_uri()))
        changed = change(good)
        assert changed != good, name
        assert named(send(server, changed)) == ("encoding", None, None), name


def test_data_of_the_greatest_size_are_refused_for_what_is_in_them(server: Wallet) -> None:
    entries = entries_of([CONTROLLER])
    file = (PROFILE_KEY, a_uri(4_000))
    problem = send(server, deployments.encode_entries([*entries, file]))
    assert named(problem) == ("metadata-too-long", len(entries), "0x" + PROFILE_KEY.hex())
    # Eleven people, each with an element and permissions.
    people = ["0x" + secrets.token_hex(20) for _ in range(11)]
    listed = [(an_element(at), bytes.fromhex(one[2:])) for at, one in enumerate(people)]
    words = [(permissions_key(one), ALL_PERMISSIONS.to_bytes(32, "big")) for one in people]
    length = (lsp23.CONTROLLERS_KEY, len(people).to_bytes(16, "big"))
    problem = send(server, deployments.encode_entries([length, *listed, *words]))
    assert named(problem) == ("controllers", None, None)


@pytest.mark.parametrize("length", [0, lsp23.MOST_DATA_BYTES + 1])
def test_no_data_and_too_long_data_are_refused_as_a_member_of_the_body(server: Wallet, length: int) -> None:
    body = {"salt": "0x" + a_salt().hex(), "postDeploymentCallData": "0x" + bytes(length).hex()}
    assert "postDeploymentCallData" in str(refused(server, 400, "invalid-request", body).body)


def test_members_for_funding_and_other_code_change_nothing(server: Wallet) -> None:
    data, salt = deployments.encode_entries(entries_of([CONTROLLER])), a_salt()
    body = {"salt": "0x" + salt.hex(), "postDeploymentCallData": "0x" + data.hex()}
    others = dict.fromkeys(
        ("fundingAmount", "value", "implementation", "postDeploymentModule"), "0x" + "11" * 20
    )
    assert server.post(PATH, body | others).status == 200
    wanted = Deployment(salt, deployments.PROFILE, deployments.KEY_MANAGER, deployments.MODULE, data)
    # This calldata has no value, neither for the profile nor for the key manager.
    assert bytes(RelayTransaction.objects.get().payload) == deployments.encode(wanted)


def send(server: Wallet, data: bytes) -> dict[str, object]:
    """Ask for a profile of these data, which is refused without a trace; return the problem."""
    body = {"salt": "0x" + a_salt().hex(), "postDeploymentCallData": "0x" + data.hex()}
    return refused(server, 422, "profile-data-refused", body).body


def named(problem: dict[str, object]) -> tuple[object, object, object]:
    return problem["reason"], problem["entry"], problem["dataKey"]
