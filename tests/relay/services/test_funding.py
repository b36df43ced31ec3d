"""The treasury tops relayers up, each amount once, and never more than its limits."""

import logging
import secrets
from collections.abc import Iterator
from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone
from eth_account import Account
from pytest_django import Settings

from gateway.chain.signing import get_signer
from gateway.chain.treasury import TRANSFER_GAS, forget_treasury
from relay.models import Relayer, TopUp, Treasury
from relay.services.fleet import relayers as relay_relayers
from relay.services.sending import funding
from tests.factories import make
from tests.relay.chain import GWEI, Chain
from tests.relay.conftest import LYX
from tests.relay.workers import later
from tests.threads import at_once

pytestmark = pytest.mark.django_db
BELOW, TARGET = LYX // 20, LYX // 5


@pytest.fixture
def treasury(chain: Chain, settings: Settings) -> Iterator[str]:
    """Give this process a funded treasury and return its private key."""
    key = "0x" + secrets.token_hex(32)
    settings.RELAY_TREASURY_KEY = key
    settings.RELAY_TOP_UP_BELOW_WEI, settings.RELAY_TOP_UP_TO_WEI = BELOW, TARGET
    forget_treasury()
    chain.fund(10 * LYX, Account.from_key(key).address)
    yield key
    forget_treasury()


def balances(relayers: list[Relayer]) -> list[int]:
    """Read the relayers from the chain and return what they hold."""
    relay_relayers.sync(now=timezone.now())
    held = dict(Relayer.objects.values_list("pk", "balance_wei"))
    return [int(held[relayer.pk]) for relayer in relayers]


def run_until_mined(chain: Chain) -> None:
    """Take the steps from a transfer that was sent to the one after it."""
    chain.mine(3)
    relay_relayers.sync(now=timezone.now())
    assert funding.top_up(now=timezone.now()) is None
    relay_relayers.sync(now=timezone.now())


def test_a_relayer_below_the_limit_is_filled_up_to_the_target_and_the_others_get_nothing(
    chain: Chain, treasury: str, relayers: list[Relayer]
) -> None:
    chain.fund(BELOW, *(relayer.address for relayer in relayers[1:]))
    chain.fund(BELOW - 1, relayers[0].address)
    relay_relayers.sync(now=timezone.now())

    sent = funding.top_up(now=timezone.now())
    assert sent is not None
    assert chain.knows(sent.transaction_hash)
    run_until_mined(chain)

    assert balances(relayers) == [TARGET] + [BELOW] * (len(relayers) - 1)
    row = TopUp.objects.get()
    assert (row.status, row.amount_wei, row.relayer_id) == ("mined", TARGET - BELOW + 1, relayers[0].pk)
    assert Treasury.objects.get().balance_wei == 10 * LYX - row.amount_wei - (row.fee_wei or 0)
    assert funding.top_up(now=timezone.now()) is None
    assert TopUp.objects.count() == 1


def test_the_lowest_balance_is_funded_first_and_one_transfer_is_pending_at_a_time(
    chain: Chain, treasury: str, relayers: list[Relayer]
) -> None:
    for wei, relayer in enumerate(reversed(relayers)):
        chain.fund(wei, relayer.address)
    relay_relayers.sync(now=timezone.now())
    for relayer in reversed(relayers):
        first, again = (funding.top_up(now=timezone.now()) for _ in range(2))
        assert first is not None
        assert again is not None
        assert (first.relayer_id, again.transaction_hash) == (relayer.pk, first.transaction_hash)
        run_until_mined(chain)
    assert balances(relayers) == [TARGET] * len(relayers)


def test_a_relayer_gets_no_second_transfer_before_the_tracker_has_seen_the_first_arrive(
    chain: Chain, treasury: str, relayers: list[Relayer]
) -> None:
    chain.fund(0, relayers[0].address)
    relay_relayers.sync(now=timezone.now())
    funding.top_up(now=timezone.now())
    chain.mine(3)
    for _ in range(3):
        assert funding.top_up(now=timezone.now()) is None
    assert TopUp.objects.count() == 1


def test_a_transfer_that_the_pool_lost_is_sent_again(
    chain: Chain, treasury: str, relayers: list[Relayer]
) -> None:
    chain.fund(0, relayers[0].address)
    relay_relayers.sync(now=timezone.now())
    funding.top_up(now=timezone.now())
    chain.drop_pool()
    funding.top_up(now=timezone.now())
    run_until_mined(chain)
    assert balances(relayers)[0] == TARGET


def test_a_transfer_that_is_mined_and_not_confirmed_is_not_sent_again(
    chain: Chain, treasury: str, relayers: list[Relayer]
) -> None:
    chain.fund(0, relayers[0].address)
    relay_relayers.sync(now=timezone.now())
    assert funding.top_up(now=timezone.now()) is not None
    chain.mine()
    assert funding.top_up(now=timezone.now()) is None
    assert TopUp.objects.get().status == "sent"


@pytest.mark.parametrize("is_too_cheap", [True, False])
def test_a_transfer_that_no_block_takes_is_replaced_and_paid_once(
    chain: Chain, treasury: str, relayers: list[Relayer], is_too_cheap: bool
) -> None:
    chain.fund(0, relayers[0].address)
    relay_relayers.sync(now=timezone.now())
    first = funding.top_up(now=timezone.now())
    assert first is not None
    chain.drop_pool()
    if is_too_cheap:
        chain.set_base_fee(first.max_fee_per_gas_wei)
    second = funding.top_up(now=later(1_000))
    assert second is not None
    assert second.sequence == 1
    chain.set_base_fee(GWEI)
    run_until_mined(chain)
    assert balances(relayers)[0] == TARGET
    assert list(TopUp.objects.order_by("sequence").values_list("status", flat=True)) == ["replaced", "mined"]


@pytest.mark.django_db(transaction=True)
def test_concurrent_funding_workers_send_one_transfer(
    chain: Chain, treasury: str, relayers: list[Relayer]
) -> None:
    for relayer in relayers:
        chain.fund(0, relayer.address)
    relay_relayers.sync(now=timezone.now())
    at_once([partial(funding.top_up, now=timezone.now())] * 6)
    assert TopUp.objects.count() == 1
    run_until_mined(chain)
    assert sorted(balances(relayers)) == [0] * (len(relayers) - 1) + [TARGET]


@pytest.mark.parametrize(
    ("held", "paid_before", "lack"),
    [
        (0, 0, "it holds 0 wei, too little for a transfer; send LYX to"),
        (BELOW + TRANSFER_GAS * GWEI, 0, f"it holds {BELOW + TRANSFER_GAS * GWEI} wei, too little"),
        (10 * LYX, 5 * LYX - BELOW + 1, "its daily limit of 5000000000000000000 wei is reached"),
    ],
    ids=[
        "a treasury that was never funded",
        "a treasury that is nearly empty",
        "a day's limit that is nearly used up",
    ],
)
def test_transfers_stay_within_the_treasurys_limit_and_the_refusal_is_logged_once(
    chain: Chain,
    treasury: str,
    relayers: list[Relayer],
    settings: Settings,
    caplog: pytest.LogCaptureFixture,
    held: int,
    paid_before: int,
    lack: str,
) -> None:
    settings.RELAY_TOP_UP_DAILY_WEI = 5 * LYX
    address = funding.treasury_address()
    chain.fund(held, address)
    chain.fund(0, relayers[0].address)
    relay_relayers.sync(now=timezone.now())
    if paid_before:
        _paid(relayers[1], address, paid_before)
    before = TopUp.objects.count()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert funding.top_up(now=timezone.now()) is None
    assert caplog.text.count(f"no relayer is topped up by the treasury {address}: {lack}") == 1
    assert TopUp.objects.count() == before
    TopUp.objects.update(created_at=timezone.now() - timedelta(days=1, seconds=1))
    chain.fund(10 * LYX, address)
    assert funding.top_up(now=timezone.now()) is not None


def _paid(relayer: Relayer, address: str, amount_wei: int) -> None:
    make(
        TopUp,
        relayer=relayer,
        treasury_address=address,
        account_nonce=10**6,
        amount_wei=amount_wei,
        status=TopUp.Status.MINED,
        ended_at=timezone.now() - timedelta(days=1),
    )


def test_a_treasury_key_that_is_used_elsewhere_loses_the_transfer_and_the_next_one_is_sent(
    chain: Chain, treasury: str, relayers: list[Relayer], caplog: pytest.LogCaptureFixture
) -> None:
    chain.fund(0, relayers[0].address)
    relay_relayers.sync(now=timezone.now())
    lost = funding.top_up(now=timezone.now())
    assert lost is not None
    chain.drop_pool()
    chain.use_key_elsewhere(treasury, account_nonce=lost.account_nonce)
    run_until_mined(chain)
    assert "was used elsewhere" in caplog.text
    sent = funding.top_up(now=timezone.now())
    assert sent is not None
    assert sent.account_nonce == lost.account_nonce + 1
    run_until_mined(chain)
    assert balances(relayers)[0] == TARGET


def test_with_the_address_alone_the_balance_is_read_and_nothing_is_sent(
    chain: Chain, relayers: list[Relayer], settings: Settings
) -> None:
    settings.RELAY_TREASURY_ADDRESS = Account.create().address.lower()
    chain.fund(0, relayers[0].address)
    chain.fund(LYX, settings.RELAY_TREASURY_ADDRESS)
    relay_relayers.sync(now=timezone.now())
    assert funding.top_up(now=timezone.now()) is None
    assert (Treasury.objects.get().balance_wei, TopUp.objects.count()) == (LYX, 0)


def test_paused_relayers_are_funded_and_quarantined_or_retired_ones_are_not(
    chain: Chain, treasury: str, relayers: list[Relayer]
) -> None:
    paused, quarantined, retired = relayers[:3]
    for relayer in relayers:
        chain.fund(LYX, relayer.address)
    chain.fund(1, paused.address)
    chain.fund(0, quarantined.address, retired.address)
    Relayer.objects.update(is_active=False)
    Relayer.objects.filter(pk=quarantined.pk).update(quarantined_at=timezone.now())
    relay_relayers.sync(now=timezone.now())
    Relayer.objects.filter(pk=retired.pk).update(retired_at=timezone.now())
    sent = funding.top_up(now=timezone.now())
    assert sent is not None
    assert sent.relayer_id == paused.pk
    run_until_mined(chain)
    assert funding.top_up(now=timezone.now()) is None


def test_every_receiver_is_a_relayer_that_this_process_signs_for(
    chain: Chain, treasury: str, relayers: list[Relayer]
) -> None:
    other_relayer = make(Relayer, address=Account.create().address, synced_at=timezone.now())
    for relayer in relayers:
        chain.fund(LYX, relayer.address)
    relay_relayers.sync(now=timezone.now())
    assert other_relayer.address not in get_signer().addresses()
    assert funding.top_up(now=timezone.now()) is None
    assert TopUp.objects.count() == 0
