"""Account nonces that nothing would use up are found and filled."""

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.db.models import F
from django.utils import timezone
from eth_account import Account

from gateway.chain.client import get_chain_client
from gateway.chain.types import SendKind
from relay.models import GapFiller, Relayer
from relay.services.fleet import losses
from relay.services.sending import gaps
from relay.services.sending.gaps import GapWatch
from tests.relay.chain import GWEI, Chain, FaultyClient
from tests.relay.conftest import Accept
from tests.relay.workers import broadcast_all, later, track

pytestmark = pytest.mark.django_db
SOON, LATER = 1, 11


@pytest.fixture
def relayer(relayers: list[Relayer]) -> Relayer:
    """Return a relayer whose next account nonce no call has taken."""
    Relayer.objects.filter(pk=relayers[0].pk).update(next_account_nonce=F("next_account_nonce") + 1)
    return Relayer.objects.get(pk=relayers[0].pk)


def look(watch: GapWatch, seconds: float) -> int:
    track()
    return watch.fill(head=get_chain_client().head(), now=later(seconds))


def test_a_gap_is_filled_once_it_has_been_seen_for_a_while(relayer: Relayer, chain: Chain) -> None:
    watch = GapWatch()
    assert [look(watch, 0), look(watch, SOON), look(watch, LATER)] == [0, 0, 1]
    filler = GapFiller.objects.get()
    assert (filler.relayer_id, filler.account_nonce) == (relayer.pk, relayer.next_account_nonce - 1)
    assert chain.knows(filler.transaction_hash)
    chain.mine()
    assert look(watch, LATER + 1) == 0
    relayer.refresh_from_db()
    assert relayer.in_flight == 0
    transaction = chain.transaction(filler.transaction_hash)
    assert (int(transaction["value"], 16), transaction["input"]) == (0, "0x")


def test_the_relayer_continues_behind_a_gap(relayer: Relayer, chain: Chain, accept: Accept) -> None:
    Relayer.objects.exclude(pk=relayer.pk).update(is_active=False)
    row = accept()
    broadcast_all()
    chain.mine(settings.CONFIRMATIONS)
    assert track() == 0
    watch = GapWatch()
    look(watch, 0)
    look(watch, LATER)
    chain.mine(settings.CONFIRMATIONS)
    assert track() == 1
    row.refresh_from_db()
    assert row.status == "Success"


def test_a_gap_waits_if_the_loss_budget_is_used_up(relayer: Relayer, chain: Chain, settings: Any) -> None:
    settings.RELAY_LOSS_PER_HOUR_WEI = 0
    watch = GapWatch()
    look(watch, 0)
    assert (look(watch, LATER), GapFiller.objects.count()) == (0, 0)
    settings.RELAY_LOSS_PER_HOUR_WEI = 10**18
    assert look(watch, LATER + 1) == 1
    assert losses.usage(now=timezone.now()).lost_wei > 0


def test_two_workers_fill_a_gap_once(relayer: Relayer, chain: Chain) -> None:
    watches = [GapWatch(), GapWatch()]
    for watch in watches:
        look(watch, 0)
    assert [look(watch, LATER) for watch in watches] == [1, 0]
    assert GapFiller.objects.count() == 1


def test_calls_in_progress_are_not_gaps(accept: Accept, chain: Chain) -> None:
    accept()
    head = get_chain_client().head()
    assert gaps.find_gaps(head=head) == []
    broadcast_all()
    assert gaps.find_gaps(head=head) == []
    chain.drop_pool()
    assert gaps.find_gaps(head=head) == []
    assert GapWatch().fill(head=head, now=timezone.now()) == 0


def test_a_node_that_lags_shows_no_gap(
    accept: Accept, settle: Callable[[], int], chain: Chain, relayers: list[Relayer]
) -> None:
    before = get_chain_client().head()
    row = accept()
    settle()
    # The node is asked again, and has seen none of it.
    Relayer.objects.filter(pk=row.relayer_id).update(mined_account_nonce=F("mined_account_nonce") - 1)
    assert gaps.find_gaps(head=before) == []
    assert [gap.relayer_id for gap in gaps.find_gaps(head=get_chain_client().head())] == [row.relayer_id]


def test_a_foreign_transaction_that_a_reorganisation_removed_leaves_a_gap_that_is_filled(
    relayers: list[Relayer], chain: Chain, settings: Any
) -> None:
    relayer = relayers[0]
    keys = {Account.from_key(key).address: key for key in settings.RELAY_RELAYER_KEYS}
    chain.use_key_elsewhere(keys[relayer.address], account_nonce=relayer.next_account_nonce)
    chain.mine()
    track()
    relayer.refresh_from_db()
    taken = relayer.next_account_nonce - 1
    chain.reorganise(1)
    watch = GapWatch()
    look(watch, 0)
    assert look(watch, LATER) == 1
    assert GapFiller.objects.get().account_nonce == taken
    chain.mine()
    track()
    relayer.refresh_from_db()
    assert relayer.in_flight == 0


def test_a_filler_is_sent_again_at_higher_fees_until_it_is_mined(relayer: Relayer, chain: Chain) -> None:
    watch = GapWatch()
    look(watch, 0)
    look(watch, LATER)
    first = GapFiller.objects.get()
    chain.drop_pool()
    chain.set_base_fee(first.max_fee_per_gas_wei + GWEI)
    look(watch, LATER + settings.RELAY_RESEND_SECONDS + 1)
    second = GapFiller.objects.get()
    assert second.max_fee_per_gas_wei > first.max_fee_per_gas_wei
    assert chain.knows(second.transaction_hash)
    chain.mine()
    track()
    relayer.refresh_from_db()
    assert relayer.in_flight == 0


def test_a_filler_that_the_node_does_not_take_is_sent_with_the_next_block(
    relayer: Relayer, chain: Chain, node: FaultyClient
) -> None:
    watch = GapWatch()
    look(watch, 0)
    node.answer_next(SendKind.UNREACHABLE)
    look(watch, LATER)
    filler = GapFiller.objects.get()
    assert (filler.sent_at, filler.node_message) == (None, "as prepared")
    look(watch, LATER + 1)
    filler.refresh_from_db()
    assert filler.sent_at is not None


def test_a_filler_that_waits_in_the_pool_is_sent_again_only_after_a_while(
    relayer: Relayer, chain: Chain, node: FaultyClient
) -> None:
    watch = GapWatch()
    look(watch, 0)
    look(watch, LATER)
    look(watch, LATER + 1)
    assert len(node.sent) == 1
    look(watch, LATER + settings.RELAY_RESEND_SECONDS + 1)
    assert node.sent == [bytes(GapFiller.objects.get().raw)] * 2


def test_a_filler_that_no_block_takes_is_replaced_whatever_the_node_says(
    relayer: Relayer, chain: Chain, node: FaultyClient
) -> None:
    watch = GapWatch()
    look(watch, 0)
    node.answer_next(SendKind.ACCEPTED, message="already known")
    look(watch, LATER)
    first = GapFiller.objects.get()
    look(watch, LATER + settings.RELAY_REPLACE_SECONDS + 1)
    second = GapFiller.objects.get()
    assert 8 * second.max_fee_per_gas_wei >= 9 * first.max_fee_per_gas_wei
    assert node.sent == [bytes(second.raw)]
    chain.mine()
    track()
    relayer.refresh_from_db()
    assert relayer.in_flight == 0


def test_a_filler_removed_by_a_reorganisation_is_sent_again(relayer: Relayer, chain: Chain) -> None:
    watch = GapWatch()
    look(watch, 0)
    look(watch, LATER)
    chain.mine()
    look(watch, LATER)
    chain.reorganise(1)
    look(watch, LATER + settings.RELAY_RESEND_SECONDS + 1)
    chain.mine()
    track()
    relayer.refresh_from_db()
    assert (relayer.in_flight, GapFiller.objects.count()) == (0, 1)
