"""The gas figure of a follower is enough on the real contracts, for payloads of every kind."""

import secrets
from collections.abc import Callable

import pytest
from eth_abi.abi import encode

from gateway.chain.lsp6 import Permission
from tests.fakes.profiles import Controller, Profile, random_address, set_data, transfer
from tests.gateway.chain.worlds import Setting

_EXECUTE_BATCH = bytes.fromhex("31858452")
_CAP = 16_000_000


def _batch(count: int) -> bytes:
    targets = [random_address() for _ in range(count)]
    types = ["uint256[]", "address[]", "uint256[]", "bytes[]"]
    return _EXECUTE_BATCH + encode(types, [[0] * count, targets, [1] * count, [b""] * count])


_PAYLOADS: dict[str, Callable[[], bytes]] = {
    "LYX to a new account": lambda: transfer(random_address()),
    "a call with 12 kB": lambda: transfer(random_address(), 0, secrets.token_bytes(12_288)),
    "a value of 93 bytes": lambda: set_data(value=secrets.token_bytes(93)),
    "a value of 6 kB": lambda: set_data(value=secrets.token_bytes(6_144)),
    "a batch of 20": lambda: _batch(20),
}


@pytest.mark.parametrize("kind", _PAYLOADS)
def test_a_follower_is_executed_within_its_figure(anvil: Setting, kind: str) -> None:
    profile, payload = anvil.world.create_profile(), _PAYLOADS[kind]()
    figure = _figure(anvil, profile, payload)
    _is_enough(anvil, profile, payload, figure)


def test_a_controllers_allowed_calls_are_part_of_the_figure(anvil: Setting) -> None:
    targets = tuple(random_address() for _ in range(25))
    permissions = Permission.EXECUTE_RELAY_CALL | Permission.TRANSFERVALUE | Permission.SUPER_SETDATA
    profile = anvil.world.create_profile(Controller(permissions, allowed_targets=targets))
    payload = transfer(targets[-1])
    figure = _figure(anvil, profile, payload)
    _is_enough(anvil, profile, payload, figure)


def _figure(anvil: Setting, profile: Profile, payload: bytes) -> int:
    return anvil.client.simulate_follower(
        key_manager=profile.key_manager_address,
        profile=profile.profile_address,
        controller=profile.controller.address,
        payload=payload,
        gas_cap=_CAP,
    )


def _is_enough(anvil: Setting, profile: Profile, payload: bytes, figure: int) -> None:
    """Execute the call as the second of a channel with exactly this limit; it may not be far too high either."""
    channel = secrets.randbelow(2**128) << 128
    anvil.world.fund(10**21, anvil.relayer)
    anvil.execute(anvil.call(profile, set_data(), relay_nonce=channel))
    follower = anvil.call(profile, payload, relay_nonce=channel | 1)
    needed = anvil.simulate(follower, gas_cap=_CAP)
    signed = anvil.execute(follower, gas_limit=figure)
    view = anvil.client.read_chain(transaction_hashes=[signed.transaction_hash], accounts=[], confirmations=1)
    assert view.receipts[signed.transaction_hash].succeeded
    assert needed <= figure < 1.8 * needed
