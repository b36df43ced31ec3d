"""What every chain client reads before a call is sent, on the fake chain and on a real node with LUKSO's contracts."""

import secrets

import pytest

from gateway.chain.contracts import OWNER, decode_address
from gateway.chain.lsp6 import ALL_PERMISSIONS, Permission
from gateway.chain.types import KeyManagerState, ProfileState
from signer.contracts import code_name, implementation_of
from tests.fakes.profiles import Controller, Profile, random_address, random_key, set_data, sign
from tests.gateway.chain.worlds import CHAIN_ID, Setting

RELAY = Permission.EXECUTE_RELAY_CALL


class TestReading:
    def test_the_client_reads_chain_id_and_newest_block(self, chain: Setting) -> None:
        before = chain.client.head()
        chain.world.mine(2)
        after = chain.client.head()
        assert chain.client.chain_id() == CHAIN_ID
        assert after.number == before.number + 2
        assert after.timestamp >= before.timestamp
        assert after.base_fee_wei > 0

    def test_every_node_has_a_name_and_a_healthy_node_has_no_fault(self, chain: Setting) -> None:
        chain.client.head()
        nodes = chain.client.nodes()
        assert nodes
        assert all(node.name and not node.fault for node in nodes)

    def test_the_client_reads_a_profiles_code_owner_and_a_controllers_permissions(
        self, chain: Setting
    ) -> None:
        profile = chain.world.create_profile()
        digest = secrets.token_bytes(32)
        state = chain.client.read_profile(
            profile=profile.profile_address,
            controller=profile.controller.address,
            digest=digest,
            signature=profile.controller.sign(digest),
        )
        assert implementation_of(state.profile_code)
        assert state.owner == profile.key_manager_address
        assert state.permissions == ALL_PERMISSIONS
        assert state.signature_valid is True

    def test_a_probe_reads_the_code_at_an_address(self, chain: Setting) -> None:
        profile = chain.world.create_profile().profile_address
        assert implementation_of(chain.client.probe_code(address=profile))
        assert chain.client.probe_code(address=random_address()) == b""

    def test_a_view_returns_the_contracts_result_and_nothing_without_a_contract(self, chain: Setting) -> None:
        profile = chain.world.create_profile()
        owner = chain.client.read_view(contract=profile.profile_address, calldata=OWNER)
        assert decode_address(owner) == profile.key_manager_address
        assert chain.client.read_view(contract=profile.profile_address, calldata=b"\1\2\3\4") == b""
        assert chain.client.read_view(contract=random_address(), calldata=OWNER) == b""

    @pytest.mark.parametrize(("permissions", "accepted"), [(Permission.SIGN, True), (RELAY, False)])
    def test_a_signature_is_valid_only_with_the_sign_permission(
        self, chain: Setting, permissions: int, accepted: bool
    ) -> None:
        profile = chain.world.create_profile(Controller(permissions))
        digest = secrets.token_bytes(32)
        state = chain.client.read_profile(
            profile=profile.profile_address,
            controller=profile.controller.address,
            digest=digest,
            signature=profile.controller.sign(digest),
        )
        assert (state.permissions, state.signature_valid) == (permissions, accepted)

    def test_a_signature_of_an_unrelated_key_is_invalid(self, chain: Setting) -> None:
        profile = chain.world.create_profile()
        digest = secrets.token_bytes(32)
        state = chain.client.read_profile(
            profile=profile.profile_address,
            controller=random_address(),
            digest=digest,
            signature=sign(random_key(), digest),
        )
        assert (state.permissions, state.signature_valid) == (0, False)

    def test_an_address_without_a_contract_is_empty(self, chain: Setting) -> None:
        nobody = random_address()
        digest = secrets.token_bytes(32)
        state = chain.client.read_profile(
            profile=nobody, controller=nobody, digest=digest, signature=sign(random_key(), digest)
        )
        assert state == ProfileState(b"", None, 0, signature_valid=False)
        assert chain.client.read_key_manager(key_manager=nobody) == KeyManagerState(b"", None)
        assert chain.client.read_permissions(profile=nobody, controllers=[random_address()]) == [0]

    def test_an_impostor_accepts_everything_and_has_no_proxy_code(self, chain: Setting) -> None:
        impostor = chain.world.deploy_impostor()
        digest = secrets.token_bytes(32)
        state = chain.client.read_profile(
            profile=impostor,
            controller=random_address(),
            digest=digest,
            signature=sign(random_key(), digest),
        )
        assert state.signature_valid is True
        assert state.permissions != 0
        assert state.owner == impostor
        assert implementation_of(state.profile_code) is None
        assert chain.client.read_key_manager(key_manager=impostor).target == impostor

    def test_the_client_reads_the_claimed_target_of_a_key_manager(self, chain: Setting) -> None:
        profile = chain.world.create_profile()
        stray = chain.world.deploy_stray_key_manager(profile.profile_address)
        own = chain.client.read_key_manager(key_manager=profile.key_manager_address)
        foreign = chain.client.read_key_manager(key_manager=stray)
        assert own.target == foreign.target == profile.profile_address
        assert implementation_of(own.code) == implementation_of(foreign.code) is not None

    def test_permissions_are_returned_in_the_requested_order(self, chain: Setting) -> None:
        people = [Controller(Permission.SIGN), Controller(RELAY | Permission.SETDATA)]
        profile = chain.world.create_profile(*people)
        controllers = [people[1].address, random_address(), people[0].address]
        permissions = chain.client.read_permissions(profile=profile.profile_address, controllers=controllers)
        assert permissions == [RELAY | Permission.SETDATA, 0, Permission.SIGN]
        assert chain.client.read_permissions(profile=profile.profile_address, controllers=[]) == []


class TestRelayState:
    def test_one_read_returns_everything_that_a_preflight_needs(self, chain: Setting) -> None:
        profile = chain.world.create_profile()
        channel = secrets.randbelow(2**128)
        chain.execute(chain.call(profile, set_data(), relay_nonce=channel << 128))
        (state,) = chain.client.read_relay_states([chain.query(profile, channel=channel)])
        code = chain.client.read_key_manager(key_manager=profile.key_manager_address).code
        assert state.key_manager_code_name == code_name(code) == implementation_of(code)
        assert state.profile_code_name not in {"", state.key_manager_code_name}
        assert state.owner == profile.key_manager_address
        assert state.target == profile.profile_address
        assert state.permissions == ALL_PERMISSIONS
        assert state.relay_nonce == channel << 128 | 1
        assert state.head == chain.client.head()
        assert state.market_tip_wei == 0

    def test_missing_contracts_read_as_none_empty_or_zero(self, chain: Setting) -> None:
        nobody = Profile(random_address(), random_address(), (Controller(),))
        (state,) = chain.client.read_relay_states([chain.query(nobody)])
        assert (state.profile_code_name, state.key_manager_code_name) == ("", "")
        assert (state.owner, state.target, state.relay_nonce) == (None, None, None)
        assert state.permissions == 0

    def test_channels_and_controllers_count_apart(self, chain: Setting) -> None:
        people = (Controller(), Controller())
        profile = chain.world.create_profile(*people)
        for sequence in range(2):
            chain.execute(chain.call(profile, set_data(), relay_nonce=5 << 128 | sequence))
        key_manager = profile.key_manager_address
        nonces = [
            chain.client.read_relay_nonce(key_manager=key_manager, controller=who.address, channel=channel)
            for who, channel in ((people[0], 5), (people[0], 6), (people[1], 5))
        ]
        assert nonces == [5 << 128 | 2, 6 << 128, 5 << 128]

    def test_a_relay_nonce_without_key_manager_is_none(self, chain: Setting) -> None:
        relay_nonce = chain.client.read_relay_nonce(
            key_manager=random_address(), controller=random_address(), channel=0
        )
        assert relay_nonce is None
