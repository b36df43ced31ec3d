"""How every chain client tries calls, on the fake chain and on a real node with LUKSO's contracts."""

import secrets
from dataclasses import replace
from typing import Any

import pytest

from gateway.chain.contracts import refusal_from_revert
from gateway.chain.errors import CallReverted
from gateway.chain.lsp6 import ALL_PERMISSIONS, Permission
from gateway.chain.lsp25 import RelayCall
from gateway.chain.types import Trial
from tests.fakes.profiles import Controller, random_address, set_data, transfer
from tests.gateway.chain.worlds import ETHER, Setting

RELAY = Permission.EXECUTE_RELAY_CALL


class TestTrial:
    def test_without_a_limit_the_trial_is_the_estimate(self, chain: Setting) -> None:
        profile = chain.world.create_profile()
        call = chain.call(profile, set_data())
        (state,) = chain.client.read_relay_states([chain.query(profile, call)])
        assert replace(state.trial, gas_used_at_cap=None) == Trial(chain.simulate(call))
        assert 0 < (state.trial.gas_used_at_cap or 0) < chain.simulate(call)

    def test_a_simulation_with_a_gas_limit_returns_the_gas_used_at_that_limit(self, chain: Setting) -> None:
        profile = chain.world.create_profile()
        call = chain.call(profile, transfer(random_address()))
        limit = chain.simulate(call) + secrets.randbelow(100_000)
        (state,) = chain.client.read_relay_states([chain.query(profile, call, gas_limit=limit)])
        assert state.trial.revert is None
        assert state.trial.gas_limit == limit
        assert (state.trial.agrees, state.trial.gas_used_at_cap) == (True, state.trial.gas_used)
        signed = chain.execute(call, gas_limit=limit)
        assert state.trial.gas_used == chain.receipt(signed.transaction_hash).gas_used

    def test_a_limit_that_does_not_suffice_reverts(self, chain: Setting) -> None:
        profile = chain.world.create_profile()
        call = chain.call(profile, transfer(random_address()))
        limit = chain.simulate(call) * 6 // 10
        (state,) = chain.client.read_relay_states([chain.query(profile, call, gas_limit=limit)])
        assert state.trial.revert is not None

    @pytest.mark.parametrize("gas_limit", [None, 400_000])
    def test_a_reverted_call_returns_its_reason_and_fails_no_other(
        self, chain: Setting, gas_limit: int | None
    ) -> None:
        one, other = chain.world.create_profile(), chain.world.create_profile()
        stray = chain.call(one, set_data(), relay_nonce=9)
        queries = [
            chain.query(one, stray, gas_limit=gas_limit),
            chain.query(other, chain.call(other, set_data()), gas_limit=gas_limit),
        ]
        reverted, succeeded = chain.client.read_relay_states(queries)
        assert refusal_from_revert(reverted.trial.revert or b"").code == "relay-nonce-refused"
        assert succeeded.trial.revert is None
        assert (reverted.owner, succeeded.owner) == (one.key_manager_address, other.key_manager_address)


class TestSimulation:
    def test_the_estimate_is_enough_and_the_gas_used_is_less(self, chain: Setting) -> None:
        profile = chain.world.create_profile()
        call = chain.call(profile, transfer(random_address()))
        estimate = chain.simulate(call)
        signed = chain.execute(call, gas_limit=estimate)
        receipt = chain.receipt(signed.transaction_hash)
        assert receipt.succeeded is True
        assert 21_000 < receipt.gas_used < estimate

    def test_a_simulation_changes_nothing(self, chain: Setting) -> None:
        profile = chain.world.create_profile()
        call = chain.call(profile, transfer(random_address()))
        assert chain.simulate(call) == chain.simulate(call)

    @pytest.mark.parametrize(
        ("fields", "code"),
        [
            ({"relay_nonce": 1}, "relay-nonce-refused"),
            ({"relay_nonce": 7 << 128 | 1}, "relay-nonce-refused"),
            ({"validity": 1 << 128 | 2}, "relay-call-expired"),
            ({"validity": 2**40 << 128}, "relay-call-not-yet-valid"),
            ({"controller": Controller()}, "controller-without-permissions"),
        ],
    )
    def test_a_call_with_a_wrong_nonce_time_or_controller_reverts(
        self, chain: Setting, fields: dict[str, Any], code: str
    ) -> None:
        profile = chain.world.create_profile()
        assert _refusal_of(chain, chain.call(profile, set_data(), **fields)) == code

    @pytest.mark.parametrize(
        ("permissions", "payload", "code"),
        [
            (Permission.SUPER_SETDATA, set_data(), "not-authorised"),
            (RELAY, set_data(), "not-authorised"),
            (RELAY | Permission.CALL, transfer(random_address(), 1), "not-authorised"),
            (RELAY | Permission.TRANSFERVALUE, transfer(random_address(), 0, b"abcd"), "not-authorised"),
            (RELAY | Permission.TRANSFERVALUE, transfer(random_address(), 1), "no-calls-allowed"),
            (RELAY | Permission.SUPER_CALL, transfer(random_address(), 0, b"abcd"), None),
            (RELAY | Permission.SUPER_SETDATA, set_data(), None),
            (ALL_PERMISSIONS, bytes.fromhex("8da5cb5b"), "payload-function-not-supported"),
            (ALL_PERMISSIONS, transfer(random_address(), 2 * ETHER), "profile-balance-too-low"),
        ],
    )
    def test_a_call_beyond_the_controllers_permissions_reverts_by_name(
        self, chain: Setting, permissions: int, payload: bytes, code: str | None
    ) -> None:
        profile = chain.world.create_profile(Controller(permissions))
        assert _refusal_of(chain, chain.call(profile, payload)) == code

    def test_allowed_calls_open_one_target_and_no_other(self, chain: Setting) -> None:
        friend = chain.world.deploy_flaky().address
        permissions = RELAY | Permission.TRANSFERVALUE | Permission.CALL
        profile = chain.world.create_profile(Controller(permissions, allowed_targets=(friend,)))
        assert _refusal_of(chain, chain.call(profile, transfer(friend))) is None
        other_call = chain.call(profile, transfer(random_address()))
        assert _refusal_of(chain, other_call) == "call-not-allowed"

    def test_a_reverted_target_differs_from_a_refusal_of_the_profile(self, chain: Setting) -> None:
        profile, flaky = chain.world.create_profile(), chain.world.deploy_flaky()
        call = chain.call(profile, transfer(flaky.address))
        assert _refusal_of(chain, call) is None
        flaky.flip()
        assert _refusal_of(chain, call) == "target-reverted"

    def test_a_gas_cap_below_the_need_reverts(self, chain: Setting) -> None:
        profile = chain.world.create_profile()
        with pytest.raises(CallReverted) as reverted:
            chain.simulate(chain.call(profile, transfer(random_address())), gas_cap=60_000)
        assert reverted.value.data == b""

    def test_a_simulation_at_an_address_without_key_manager_fails(self, fake: Setting) -> None:
        # A real node estimates a plain transfer here; the preflight reads the code first.
        profile = fake.world.create_profile()
        call = fake.call(profile, set_data())
        stray = RelayCall(random_address(), call.payload, call.signature, 0)
        with pytest.raises(CallReverted):
            fake.simulate(stray)


class TestFollowers:
    @pytest.mark.parametrize("payload", [transfer(random_address()), set_data(value=b"x" * 93)])
    def test_the_figure_is_enough_once_the_calls_before_are_executed(
        self, chain: Setting, payload: bytes
    ) -> None:
        profile = chain.world.create_profile()
        figure = _follower_gas(chain, profile, payload)
        chain.execute(chain.call(profile, set_data(), relay_nonce=0))
        follower = chain.call(profile, payload, relay_nonce=1)
        assert figure >= chain.simulate(follower)
        signed = chain.execute(follower, gas_limit=figure)
        assert chain.receipt(signed.transaction_hash).succeeded is True

    def test_a_call_without_permission_is_refused_before_its_nonce_is_next(self, chain: Setting) -> None:
        profile = chain.world.create_profile(Controller(RELAY))
        with pytest.raises(CallReverted) as reverted:
            _follower_gas(chain, profile, set_data())
        assert refusal_from_revert(reverted.value.data).code == "not-authorised"

    def test_a_payload_that_reverts_is_refused_before_its_turn(self, chain: Setting) -> None:
        profile, flaky = chain.world.create_profile(), chain.world.deploy_flaky()
        flaky.flip()
        with pytest.raises(CallReverted) as reverted:
            _follower_gas(chain, profile, transfer(flaky.address))
        assert refusal_from_revert(reverted.value.data).code == "target-reverted"

    def test_the_relay_permission_is_not_checked(self, chain: Setting) -> None:
        # LSP-20 verifies direct calls; the caller checks EXECUTE_RELAY_CALL among the permissions read.
        profile = chain.world.create_profile(Controller(Permission.SUPER_SETDATA))
        assert _follower_gas(chain, profile, set_data()) > 21_000

    def test_an_address_without_contracts_reverts(self, chain: Setting) -> None:
        with pytest.raises(CallReverted):
            chain.client.simulate_follower(
                key_manager=random_address(),
                profile=random_address(),
                controller=random_address(),
                payload=set_data(),
                gas_cap=3_000_000,
            )


def _refusal_of(chain: Setting, call: RelayCall) -> str | None:
    try:
        chain.simulate(call)
    except CallReverted as reverted:
        return refusal_from_revert(reverted.data).code
    return None


def _follower_gas(chain: Setting, profile: Any, payload: bytes) -> int:
    return chain.client.simulate_follower(
        key_manager=profile.key_manager_address,
        profile=profile.profile_address,
        controller=profile.controller.address,
        payload=payload,
        gas_cap=3_000_000,
    )
