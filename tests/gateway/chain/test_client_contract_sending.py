"""How every chain client sends transactions and follows them, on the fake chain and on a real node."""

import secrets
from typing import Any

from gateway.chain.contracts import decode_execute_relay_call
from gateway.chain.types import BlockId, ChainView, Finality, SendKind
from tests.fakes.profiles import Controller, random_address, set_data, transfer
from tests.gateway.chain.worlds import ETHER, GWEI, Setting, calldata_of, new_signer


class TestSending:
    def test_sent_bytes_are_mined_with_the_hash_that_was_signed(self, chain: Setting) -> None:
        profile, friend = chain.world.create_profile(), random_address()
        signed = chain.signed(chain.call(profile, transfer(friend, 5)))
        assert chain.kinds(signed.raw) == [SendKind.ACCEPTED]
        assert chain.receipts(signed.transaction_hash) == {}
        base_fee = chain.client.head().base_fee_wei
        chain.world.mine()
        receipt = chain.receipt(signed.transaction_hash)
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
        assert chain.kinds(signed.raw, signed.raw) == [SendKind.ACCEPTED] * 2
        assert chain.kinds(signed.raw) == [SendKind.ACCEPTED]
        chain.world.mine()
        assert chain.account_nonce == 1

    def test_bytes_that_were_mined_are_too_low(self, chain: Setting) -> None:
        signed = chain.transaction(chain.relayer)
        chain.client.send_raw_transactions([signed.raw])
        chain.world.mine()
        assert chain.kinds(signed.raw) == [SendKind.NONCE_TOO_LOW]

    def test_outcomes_are_in_the_order_of_the_sent_bytes(self, chain: Setting) -> None:
        good = [chain.transaction(chain.relayer, account_nonce=nonce).raw for nonce in (0, 1)]
        assert chain.kinds(good[0], b"\x02nonsense", good[1]) == [
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
        kinds = [chain.kinds(signed.raw)[0] for signed in (first, hardly, replacement)]
        assert kinds == [SendKind.ACCEPTED, SendKind.UNDERPRICED, SendKind.ACCEPTED]
        chain.world.mine()
        hashes = (first.transaction_hash, hardly.transaction_hash, replacement.transaction_hash)
        assert set(chain.receipts(*hashes)) == {replacement.transaction_hash}

    def test_fees_below_the_base_fee_may_be_repaired(self, chain: Setting) -> None:
        poor = chain.transaction(chain.relayer, max_fee_per_gas_wei=1, max_priority_fee_per_gas_wei=0)
        assert chain.kinds(poor.raw) == [SendKind.UNDERPRICED]

    def test_a_transaction_of_an_unfunded_relayer_is_refused_permanently(self, chain: Setting) -> None:
        signed = chain.transaction(chain.relayer)
        chain.world.fund(0, chain.relayer)
        assert chain.kinds(signed.raw) == [SendKind.REFUSED]

    def test_gas_beyond_a_block_and_a_foreign_chain_id_are_refused_permanently(self, chain: Setting) -> None:
        profile = chain.world.create_profile()
        greedy = chain.signed(chain.call(profile, set_data()), gas_limit=2 * 10**9)
        foreign = Setting(chain.world, chain.client, new_signer(chain_id=42))
        chain.world.fund(100 * ETHER, chain.relayer, foreign.relayer)
        stray = foreign.transaction(foreign.relayer, chain_id=42)
        assert chain.kinds(greedy.raw, stray.raw) == [SendKind.REFUSED] * 2

    def test_a_call_that_reverts_in_its_block_burns_gas_and_keeps_its_relay_nonce(
        self, chain: Setting
    ) -> None:
        profile, flaky = chain.world.create_profile(), chain.world.deploy_flaky()
        call = chain.call(profile, transfer(flaky.address))
        flaky.flip()
        signed = chain.execute(call)
        receipt = chain.receipt(signed.transaction_hash)
        assert (receipt.succeeded, receipt.gas_used > 21_000) == (False, True)
        assert chain.relay_nonce(profile) == 0
        flaky.flip()
        assert chain.receipt(chain.execute(call).transaction_hash).succeeded is True
        assert chain.relay_nonce(profile) == 1

    def test_a_gas_limit_below_the_need_burns_all_of_it(self, chain: Setting) -> None:
        profile = chain.world.create_profile()
        signed = chain.execute(chain.call(profile, transfer(random_address())), gas_limit=60_000)
        receipt = chain.receipt(signed.transaction_hash)
        assert receipt.succeeded is False
        assert 55_000 < receipt.gas_used <= 60_000


class TestView:
    def test_a_nonce_is_confirmed_under_the_requested_number_of_blocks(self, chain: Setting) -> None:
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

    def test_many_hashes_and_accounts_are_read_in_one_batch(self, chain: Setting) -> None:
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

    def test_a_block_is_final_under_the_requested_number_of_blocks(self, chain: Setting) -> None:
        chain.world.mine(5)
        newest = chain.client.head()
        view = _view(chain, heights=[newest.number - 3], finality=Finality(blocks=4))
        assert view.final == BlockId(newest.number - 3, view.block_hashes[newest.number - 3])
        everything = _view(chain, heights=[0], finality=Finality(blocks=10**6))
        assert everything.final == BlockId(0, everything.block_hashes[0])

    def test_the_nodes_finalized_tag_decides_finality(self, chain: Setting) -> None:
        chain.world.mine(70)
        newest = chain.client.head()
        height = newest.number - 64
        view = _view(chain, heights=[height], finality=Finality(blocks=2, by_tag=True))
        assert view.final == BlockId(height, view.block_hashes[height])

    def test_a_reorganisation_changes_hashes_and_undoes_the_blocks(self, chain: Setting) -> None:
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
        assert (chain.account_nonce, chain.relay_nonce(profile)) == (0, 0)

        # The pool has forgotten it too; the same bytes pass again.
        chain.world.mine()
        assert chain.receipts(signed.transaction_hash) == {}
        assert chain.kinds(signed.raw) == [SendKind.ACCEPTED]
        chain.world.mine()
        assert chain.receipt(signed.transaction_hash).succeeded is True
        assert (chain.account_nonce, chain.relay_nonce(profile)) == (1, 1)


class TestExternalExecutions:
    def test_a_call_sent_by_another_account_is_found_by_its_controller(self, chain: Setting) -> None:
        profile = chain.world.create_profile()
        call = chain.call(profile, set_data())
        other_sender = Setting(chain.world, chain.client, new_signer())
        chain.world.fund(ETHER, other_sender.relayer)
        external = other_sender.execute(call)
        ours = chain.execute(call)
        receipt = chain.receipt(ours.transaction_hash)
        assert receipt.succeeded is False
        (execution,) = _executions(chain, profile, 0, receipt.block_number)
        assert execution.transaction_hash == external.transaction_hash
        assert (execution.sender, execution.to) == (other_sender.relayer, profile.key_manager_address)
        assert execution.calldata == calldata_of(call)
        assert decode_execute_relay_call(execution.calldata) == (call.signature, 0, 0, call.payload)
        assert execution.selector == call.payload[:4]
        assert execution.block_number == receipt.block_number - 1
        assert chain.relay_nonce(profile) == 1

    def test_transactions_of_an_account_are_read_from_the_blocks(self, chain: Setting) -> None:
        profile = chain.world.create_profile()
        call = chain.call(profile, set_data())
        signed = chain.execute(call)
        receipt = chain.receipt(signed.transaction_hash)
        chain.world.mine(25)
        blocks = {"from_block": receipt.block_number - 1, "to_block": receipt.block_number + 25}
        (sent,) = chain.client.read_sent(senders=[chain.relayer], **blocks)
        assert (sent.transaction_hash, sent.sender) == (signed.transaction_hash, chain.relayer)
        assert (sent.account_nonce, sent.to) == (0, profile.key_manager_address)
        assert (sent.calldata, sent.receipt) == (calldata_of(call), receipt)
        assert chain.client.read_sent(senders=[random_address()], **blocks) == []
        later_blocks = {**blocks, "from_block": receipt.block_number + 1}
        assert chain.client.read_sent(senders=[chain.relayer], **later_blocks) == []

    def test_only_the_requested_blocks_are_searched(self, chain: Setting) -> None:
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


def _view(chain: Setting, *hashes: str, **questions: Any) -> ChainView:
    return chain.client.read_chain(transaction_hashes=hashes, accounts=[], confirmations=1, **questions)


def _executions(chain: Setting, profile: Any, first: int, last: int) -> Any:
    return chain.client.read_external_executions(
        key_manager=profile.key_manager_address,
        controller=profile.controller.address,
        from_block=first,
        to_block=last,
    )
