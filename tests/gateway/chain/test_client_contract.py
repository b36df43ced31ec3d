"""What every chain client promises, on the fake chain and on a real node with LUKSO's contracts."""

import secrets
from dataclasses import replace
from typing import Any

import pytest

from gateway.chain.contracts import decode_execute_relay_call, refusal_from_revert
from gateway.chain.errors import CallReverted
from gateway.chain.lsp6 import ALL_PERMISSIONS, Permission
from gateway.chain.lsp25 import RelayCall
from gateway.chain.types import BlockId, ChainView, Finality, KeyManagerState, ProfileState, SendKind, Trial
from signer.contracts import code_name, implementation_of
from tests.fakes.profiles import Controller, Profile, random_address, random_key, set_data, sign, transfer
from tests.gateway.chain.worlds import CHAIN_ID, ETHER, GWEI, Setting, calldata_of, new_signer

RELAY = Permission.EXECUTE_RELAY_CALL


class TestReading:
    def test_the_chain_tells_its_id_and_its_newest_block(self, chain: Setting) -> None:
        before = chain.client.head()
        chain.world.mine(2)
        after = chain.client.head()
        assert chain.client.chain_id() == CHAIN_ID
        assert after.number == before.number + 2
        assert after.timestamp >= before.timestamp
        assert after.base_fee_wei > 0

    def test_every_node_has_a_name_and_a_node_that_answers_has_no_fault(self, chain: Setting) -> None:
        chain.client.head()
        nodes = chain.client.nodes()
        assert nodes
        assert all(node.name and not node.fault for node in nodes)

    def test_a_profile_tells_its_code_its_owner_and_what_a_controller_may_do(self, chain: Setting) -> None:
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

    @pytest.mark.parametrize(("permissions", "accepted"), [(Permission.SIGN, True), (RELAY, False)])
    def test_a_signature_counts_only_with_the_permission_to_sign(
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

    def test_a_strangers_signature_counts_for_nothing(self, chain: Setting) -> None:
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

    def test_an_impostor_says_yes_to_everything_and_has_no_proxy_code(self, chain: Setting) -> None:
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

    def test_a_key_manager_tells_whose_it_claims_to_be(self, chain: Setting) -> None:
        profile = chain.world.create_profile()
        stray = chain.world.deploy_stray_key_manager(profile.profile_address)
        own = chain.client.read_key_manager(key_manager=profile.key_manager_address)
        foreign = chain.client.read_key_manager(key_manager=stray)
        assert own.target == foreign.target == profile.profile_address
        assert implementation_of(own.code) == implementation_of(foreign.code) is not None

    def test_permissions_come_in_the_order_asked(self, chain: Setting) -> None:
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

    def test_a_relay_nonce_without_key_manager_is_no_number(self, chain: Setting) -> None:
        relay_nonce = chain.client.read_relay_nonce(
            key_manager=random_address(), controller=random_address(), channel=0
        )
        assert relay_nonce is None


class TestTrial:
    def test_without_a_limit_the_trial_is_the_estimate(self, chain: Setting) -> None:
        profile = chain.world.create_profile()
        call = chain.call(profile, set_data())
        (state,) = chain.client.read_relay_states([chain.query(profile, call)])
        assert replace(state.trial, gas_used_at_cap=None) == Trial(chain.simulate(call))
        assert 0 < (state.trial.gas_used_at_cap or 0) < chain.simulate(call)

    def test_with_a_limit_the_trial_says_what_the_execution_at_it_uses(self, chain: Setting) -> None:
        profile = chain.world.create_profile()
        call = chain.call(profile, transfer(random_address()))
        limit = chain.simulate(call) + secrets.randbelow(100_000)
        (state,) = chain.client.read_relay_states([chain.query(profile, call, gas_limit=limit)])
        assert state.trial.revert is None
        assert state.trial.gas_limit == limit
        assert (state.trial.agrees, state.trial.gas_used_at_cap) == (True, state.trial.gas_used)
        signed = chain.execute(call, gas_limit=limit)
        assert state.trial.gas_used == _receipt(chain, signed.transaction_hash).gas_used

    def test_a_limit_that_does_not_suffice_reverts(self, chain: Setting) -> None:
        profile = chain.world.create_profile()
        call = chain.call(profile, transfer(random_address()))
        limit = chain.simulate(call) * 6 // 10
        (state,) = chain.client.read_relay_states([chain.query(profile, call, gas_limit=limit)])
        assert state.trial.revert is not None

    @pytest.mark.parametrize("gas_limit", [None, 400_000])
    def test_a_call_that_reverts_tells_why_and_fails_no_other(
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
        receipt = _receipt(chain, signed.transaction_hash)
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
    def test_a_call_out_of_order_or_time_or_by_a_stranger_reverts(
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

    def test_a_target_that_reverts_is_told_apart_from_a_profile_that_refuses(self, chain: Setting) -> None:
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

    def test_an_address_without_a_key_manager_is_no_success(self, fake: Setting) -> None:
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
        assert _receipt(chain, signed.transaction_hash).succeeded is True

    def test_what_the_controller_may_not_do_is_refused_before_its_turn(self, chain: Setting) -> None:
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

    def test_the_permission_to_be_relayed_is_not_looked_at(self, chain: Setting) -> None:
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


class TestSending:
    def test_sent_bytes_are_mined_with_the_hash_that_was_signed(self, chain: Setting) -> None:
        profile, friend = chain.world.create_profile(), random_address()
        signed = chain.signed(chain.call(profile, transfer(friend, 5)))
        assert _kinds(chain, signed.raw) == [SendKind.ACCEPTED]
        assert _receipts(chain, signed.transaction_hash) == {}
        base_fee = chain.client.head().base_fee_wei
        chain.world.mine()
        receipt = _receipt(chain, signed.transaction_hash)
        head = chain.client.head()
        assert (receipt.succeeded, receipt.block_number) == (True, head.number)
        assert receipt.block_hash.startswith("0x")
        assert GWEI < receipt.effective_gas_price_wei <= base_fee + GWEI
        view = chain.client.read_chain(
            transaction_hashes=[], accounts=[chain.relayer, friend], confirmations=1
        )
        spent = receipt.gas_used * receipt.effective_gas_price_wei
        assert view.accounts[chain.relayer].balance_wei == ETHER - spent
        assert view.accounts[friend].balance_wei == 5

    def test_the_same_bytes_twice_are_accepted_twice_and_mined_once(self, chain: Setting) -> None:
        signed = chain.transaction(chain.relayer)
        assert _kinds(chain, signed.raw, signed.raw) == [SendKind.ACCEPTED] * 2
        assert _kinds(chain, signed.raw) == [SendKind.ACCEPTED]
        chain.world.mine()
        assert chain.account_nonce == 1

    def test_bytes_that_were_mined_are_too_low(self, chain: Setting) -> None:
        signed = chain.transaction(chain.relayer)
        chain.client.send_raw_transactions([signed.raw])
        chain.world.mine()
        assert _kinds(chain, signed.raw) == [SendKind.NONCE_TOO_LOW]

    def test_outcomes_come_in_the_order_of_the_bytes(self, chain: Setting) -> None:
        good = [chain.transaction(chain.relayer, account_nonce=nonce).raw for nonce in (0, 1)]
        assert _kinds(chain, good[0], b"\x02nonsense", good[1]) == [
            SendKind.ACCEPTED,
            SendKind.REFUSED,
            SendKind.ACCEPTED,
        ]
        assert chain.client.send_raw_transactions([]) == []

    def test_a_replacement_needs_bumped_fees_and_then_takes_the_place(self, chain: Setting) -> None:
        first = chain.transaction(chain.relayer)
        profile = chain.world.create_profile()
        hardly = chain.signed(chain.call(profile, set_data()))
        replacement = chain.transaction(
            chain.relayer, max_fee_per_gas_wei=12 * GWEI, max_priority_fee_per_gas_wei=2 * GWEI
        )
        kinds = [_kinds(chain, signed.raw)[0] for signed in (first, hardly, replacement)]
        assert kinds == [SendKind.ACCEPTED, SendKind.UNDERPRICED, SendKind.ACCEPTED]
        chain.world.mine()
        hashes = (first.transaction_hash, hardly.transaction_hash, replacement.transaction_hash)
        assert set(_receipts(chain, *hashes)) == {replacement.transaction_hash}

    def test_fees_below_the_base_fee_may_be_repaired(self, chain: Setting) -> None:
        poor = chain.transaction(chain.relayer, max_fee_per_gas_wei=1, max_priority_fee_per_gas_wei=0)
        assert _kinds(chain, poor.raw) == [SendKind.UNDERPRICED]

    def test_a_relayer_without_the_money_is_refused_for_good(self, chain: Setting) -> None:
        signed = chain.transaction(chain.relayer)
        chain.world.fund(0, chain.relayer)
        assert _kinds(chain, signed.raw) == [SendKind.REFUSED]

    def test_gas_beyond_a_block_and_a_foreign_chain_id_are_refused_for_good(self, chain: Setting) -> None:
        profile = chain.world.create_profile()
        greedy = chain.signed(chain.call(profile, set_data()), gas_limit=2 * 10**9)
        foreign = Setting(chain.world, chain.client, new_signer(chain_id=42))
        chain.world.fund(100 * ETHER, chain.relayer, foreign.relayer)
        stray = foreign.transaction(foreign.relayer, chain_id=42)
        assert _kinds(chain, greedy.raw, stray.raw) == [SendKind.REFUSED] * 2

    def test_a_call_that_reverts_in_its_block_burns_gas_and_keeps_its_relay_nonce(
        self, chain: Setting
    ) -> None:
        profile, flaky = chain.world.create_profile(), chain.world.deploy_flaky()
        call = chain.call(profile, transfer(flaky.address))
        flaky.flip()
        signed = chain.execute(call)
        receipt = _receipt(chain, signed.transaction_hash)
        assert (receipt.succeeded, receipt.gas_used > 21_000) == (False, True)
        assert _relay_nonce(chain, profile) == 0
        flaky.flip()
        assert _receipt(chain, chain.execute(call).transaction_hash).succeeded is True
        assert _relay_nonce(chain, profile) == 1

    def test_a_gas_limit_below_the_need_burns_all_of_it(self, chain: Setting) -> None:
        profile = chain.world.create_profile()
        signed = chain.execute(chain.call(profile, transfer(random_address())), gas_limit=60_000)
        receipt = _receipt(chain, signed.transaction_hash)
        assert receipt.succeeded is False
        assert 55_000 < receipt.gas_used <= 60_000


class TestView:
    def test_a_nonce_is_confirmed_under_as_many_blocks_as_were_asked(self, chain: Setting) -> None:
        chain.client.send_raw_transactions([chain.transaction(chain.relayer).raw])
        seen = []
        for _ in range(3):
            chain.world.mine()
            view = chain.client.read_chain(transaction_hashes=[], accounts=[chain.relayer], confirmations=3)
            account = view.accounts[chain.relayer]
            seen.append((account.latest_nonce, account.confirmed_nonce))
        assert seen == [(1, 0), (1, 0), (1, 1)]

    def test_more_confirmations_than_blocks_confirm_nothing(self, chain: Setting) -> None:
        chain.client.send_raw_transactions([chain.transaction(chain.relayer).raw])
        chain.world.mine()
        view = chain.client.read_chain(transaction_hashes=[], accounts=[chain.relayer], confirmations=10**6)
        assert view.accounts[chain.relayer].confirmed_nonce == 0

    def test_many_hashes_and_accounts_are_read_at_once(self, chain: Setting) -> None:
        signed = [chain.transaction(chain.relayer, account_nonce=nonce) for nonce in range(5)]
        chain.client.send_raw_transactions([one.raw for one in signed])
        chain.world.mine()
        hashes = [one.transaction_hash for one in signed]
        unknown = ["0x" + secrets.token_hex(32) for _ in range(400)]
        accounts = [random_address() for _ in range(150)]
        view = chain.client.read_chain(
            transaction_hashes=unknown[:200] + hashes + unknown[200:], accounts=accounts, confirmations=1
        )
        assert set(view.receipts) == set(hashes)
        assert list(view.accounts) == accounts
        assert {account.latest_nonce for account in view.accounts.values()} == {0}
        assert view.head == chain.client.head()

    def test_an_account_with_a_delegation_has_code(self, chain: Setting) -> None:
        plain, delegated = random_address(), random_address()
        chain.world.delegate(delegated)
        view = chain.client.read_chain(transaction_hashes=[], accounts=[plain, delegated], confirmations=1)
        assert [view.accounts[name].has_code for name in (plain, delegated)] == [False, True]

    def test_blocks_are_named_by_their_hashes_as_far_as_the_chain_reaches(self, chain: Setting) -> None:
        chain.client.send_raw_transactions([chain.transaction(chain.relayer).raw])
        chain.world.mine(3)
        newest = chain.client.head()
        heights = [newest.number, newest.number - 2, newest.number + 1]
        view = _view(chain, heights=heights)
        assert set(view.block_hashes) == set(heights[:2])
        assert view.block_hashes[newest.number] == newest.block_hash == view.head.block_hash
        assert view.final is None

    def test_a_block_is_final_under_as_many_blocks_as_were_asked(self, chain: Setting) -> None:
        chain.world.mine(5)
        newest = chain.client.head()
        view = _view(chain, heights=[newest.number - 3], finality=Finality(blocks=4))
        assert view.final == BlockId(newest.number - 3, view.block_hashes[newest.number - 3])
        everything = _view(chain, heights=[0], finality=Finality(blocks=10**6))
        assert everything.final == BlockId(0, everything.block_hashes[0])

    def test_the_nodes_tag_says_what_is_final(self, chain: Setting) -> None:
        chain.world.mine(70)
        newest = chain.client.head()
        height = newest.number - 64
        view = _view(chain, heights=[height], finality=Finality(blocks=2, by_tag=True))
        assert view.final == BlockId(height, view.block_hashes[height])

    def test_a_reorganisation_changes_hashes_and_takes_back_what_the_blocks_did(self, chain: Setting) -> None:
        profile, friend = chain.world.create_profile(), random_address()
        chain.world.mine()
        signed = chain.execute(chain.call(profile, transfer(friend, 5)))
        chain.world.mine()
        newest = chain.client.head().number
        heights = [newest - 2, newest - 1, newest]
        before = _view(chain, signed.transaction_hash, heights=heights)
        assert before.receipts[signed.transaction_hash].block_hash == before.block_hashes[newest - 1]

        chain.world.reorganise(2)
        after = _view(chain, signed.transaction_hash, heights=heights)
        assert (after.head.number, after.receipts) == (newest, {})
        kept = [after.block_hashes[height] == before.block_hashes[height] for height in heights]
        assert kept == [True, False, False]
        assert (chain.account_nonce, _relay_nonce(chain, profile)) == (0, 0)

        # The pool has forgotten it too; the same bytes pass again.
        chain.world.mine()
        assert _receipts(chain, signed.transaction_hash) == {}
        assert _kinds(chain, signed.raw) == [SendKind.ACCEPTED]
        chain.world.mine()
        assert _receipt(chain, signed.transaction_hash).succeeded is True
        assert (chain.account_nonce, _relay_nonce(chain, profile)) == (1, 1)


class TestExternalExecutions:
    def test_a_call_that_somebody_else_sent_is_found_by_its_controller(self, chain: Setting) -> None:
        profile = chain.world.create_profile()
        call = chain.call(profile, set_data())
        other_sender = Setting(chain.world, chain.client, new_signer())
        chain.world.fund(ETHER, other_sender.relayer)
        external = other_sender.execute(call)
        ours = chain.execute(call)
        receipt = _receipt(chain, ours.transaction_hash)
        assert receipt.succeeded is False
        (execution,) = _executions(chain, profile, 0, receipt.block_number)
        assert execution.transaction_hash == external.transaction_hash
        assert (execution.sender, execution.to) == (other_sender.relayer, profile.key_manager_address)
        assert execution.calldata == calldata_of(call)
        assert decode_execute_relay_call(execution.calldata) == (call.signature, 0, 0, call.payload)
        assert execution.selector == call.payload[:4]
        assert execution.block_number == receipt.block_number - 1
        assert _relay_nonce(chain, profile) == 1

    def test_what_an_account_has_sent_is_read_from_the_blocks(self, chain: Setting) -> None:
        profile = chain.world.create_profile()
        call = chain.call(profile, set_data())
        signed = chain.execute(call)
        receipt = _receipt(chain, signed.transaction_hash)
        chain.world.mine(25)
        blocks = {"from_block": receipt.block_number - 1, "to_block": receipt.block_number + 25}
        (sent,) = chain.client.read_sent(senders=[chain.relayer], **blocks)
        assert (sent.transaction_hash, sent.sender) == (signed.transaction_hash, chain.relayer)
        assert (sent.account_nonce, sent.to) == (0, profile.key_manager_address)
        assert (sent.calldata, sent.receipt) == (calldata_of(call), receipt)
        assert chain.client.read_sent(senders=[random_address()], **blocks) == []
        later_blocks = {**blocks, "from_block": receipt.block_number + 1}
        assert chain.client.read_sent(senders=[chain.relayer], **later_blocks) == []

    def test_only_the_blocks_asked_for_are_searched(self, chain: Setting) -> None:
        profile = chain.world.create_profile()
        chain.execute(chain.call(profile, set_data()))
        at = chain.client.head().number
        chain.world.mine()
        assert len(_executions(chain, profile, at, at)) == 1
        assert _executions(chain, profile, at + 1, at + 1) == []
        assert _executions(chain, profile, 0, at - 1) == []

    def test_another_controllers_calls_are_left_out(self, chain: Setting) -> None:
        profile = chain.world.create_profile(Controller(), Controller())
        chain.execute(chain.call(profile, set_data(), controller=profile.controllers[1]))
        assert _executions(chain, profile, 0, chain.client.head().number) == []


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


def _kinds(chain: Setting, *raw: bytes) -> list[SendKind]:
    return [outcome.kind for outcome in chain.client.send_raw_transactions(raw)]


def _view(chain: Setting, *hashes: str, **questions: Any) -> ChainView:
    return chain.client.read_chain(transaction_hashes=hashes, accounts=[], confirmations=1, **questions)


def _receipts(chain: Setting, *hashes: str) -> Any:
    return chain.client.read_chain(transaction_hashes=hashes, accounts=[], confirmations=1).receipts


def _receipt(chain: Setting, transaction_hash: str) -> Any:
    return _receipts(chain, transaction_hash)[transaction_hash]


def _relay_nonce(chain: Setting, profile: Any) -> int:
    relay_nonce = chain.client.read_relay_nonce(
        key_manager=profile.key_manager_address, controller=profile.controller.address, channel=0
    )
    assert relay_nonce is not None
    return relay_nonce


def _executions(chain: Setting, profile: Any, first: int, last: int) -> Any:
    return chain.client.read_external_executions(
        key_manager=profile.key_manager_address,
        controller=profile.controller.address,
        from_block=first,
        to_block=last,
    )
