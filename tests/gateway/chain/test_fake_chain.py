"""What the fake chain can do that no node is asked for: reorganisations, outages, lost pools, ordered refusals."""

import pytest

from gateway.chain.errors import NodeUnavailable
from gateway.chain.types import SendKind
from tests.fakes.chain import FakeChain
from tests.fakes.profiles import random_address, transfer
from tests.gateway.chain.worlds import GWEI, Setting


@pytest.fixture
def world(fake: Setting) -> FakeChain:
    """Return the fake chain of the setting."""
    assert isinstance(fake.world, FakeChain)
    return fake.world


def test_a_reorganisation_removes_blocks_and_undoes_their_effects(fake: Setting, world: FakeChain) -> None:
    profile, friend = world.create_profile(), random_address()
    call = fake.call(profile, transfer(friend, 5))
    signed = fake.execute(call)
    assert world.balance_wei(friend) == 5
    world.take_back()
    view = fake.client.read_chain(
        transaction_hashes=[signed.transaction_hash], accounts=[fake.relayer], confirmations=1
    )
    assert (view.receipts, view.accounts[fake.relayer].latest_nonce) == ({}, 0)
    assert world.balance_wei(friend) == 0
    world.mine()
    again = fake.client.read_chain(transaction_hashes=[signed.transaction_hash], accounts=[], confirmations=1)
    assert again.receipts[signed.transaction_hash].succeeded
    assert world.balance_wei(friend) == 5


def test_an_absent_node_fails_every_request(fake: Setting, world: FakeChain) -> None:
    signed = fake.transaction(fake.relayer)
    with world.away():
        with pytest.raises(NodeUnavailable):
            fake.client.head()
        assert fake.client.send_raw_transactions([signed.raw])[0].kind is SendKind.UNREACHABLE
    assert fake.client.head().number == 0
    assert world.pending == []


def test_gaps_and_poor_fees_wait_in_the_pool(fake: Setting, world: FakeChain) -> None:
    second = fake.transaction(fake.relayer, account_nonce=1)
    first = fake.transaction(fake.relayer, account_nonce=0, max_fee_per_gas_wei=2 * GWEI)
    fake.client.send_raw_transactions([second.raw, first.raw])
    world.base_fee_wei = 3 * GWEI
    world.mine()
    assert [one.account_nonce for one in world.pending] == [0, 1]
    world.base_fee_wei = GWEI
    world.mine()
    assert (world.pending, fake.account_nonce) == ([], 2)


def test_a_replacement_must_add_a_tenth(fake: Setting) -> None:
    fake.client.send_raw_transactions([fake.transaction(fake.relayer).raw])
    offers = [
        fake.transaction(fake.relayer, max_fee_per_gas_wei=fee, max_priority_fee_per_gas_wei=tip)
        for fee, tip in (
            (11 * GWEI - 1, 2 * GWEI),
            (20 * GWEI, GWEI + 1),
            (11 * GWEI, 11 * GWEI // 10),
        )
    ]
    kinds = [outcome.kind for outcome in fake.client.send_raw_transactions([one.raw for one in offers])]
    assert kinds == [SendKind.UNDERPRICED, SendKind.UNDERPRICED, SendKind.ACCEPTED]


def test_requests_are_counted_and_permissions_can_change(fake: Setting, world: FakeChain) -> None:
    profile = world.create_profile()
    controller = profile.controller.address
    world.set_permissions(profile, controller, 0)
    world.set_owner(profile, controller)
    (state,) = fake.client.read_relay_states([fake.query(profile)])
    assert (state.permissions, state.owner) == (0, controller)
    assert world.request_counts == {"read_relay_states": 1}
