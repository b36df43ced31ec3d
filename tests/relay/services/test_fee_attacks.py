"""What strangers can do to the price of the next call: on a real chain, by paying tips in quiet blocks."""

import secrets
import statistics
from collections.abc import Callable

import pytest
from django.conf import settings

from tests.relay.chain import GWEI, Chain
from tests.relay.conftest import Accept

pytestmark = pytest.mark.django_db
_BLOCKS = 10


@pytest.mark.usefixtures("node")
def test_a_stranger_who_pays_tips_in_quiet_blocks_moves_no_price(
    accept: Accept, chain: Chain, settle: Callable[[], int]
) -> None:
    tip_wei = 40 * GWEI
    chain.set_base_fee(7)
    channel = secrets.randbits(100)
    for _ in range(2):
        accept(channel=channel)  # The first uses of a channel cost more.
        settle()
    before = accept(channel=channel)
    settle()

    assert chain.pay_tips(*[tip_wei] * 11) <= 10**16
    # The median of recent blocks would be this.
    assert statistics.median(chain.recent_tips(_BLOCKS)) == tip_wei

    after = accept(channel=channel)
    first, second = before.attempts.get(), after.attempts.get()
    assert second.max_priority_fee_per_gas_wei == first.max_priority_fee_per_gas_wei == settings.RELAY_TIP_WEI
    assert abs(after.expected_cost - before.expected_cost) <= 1
    assert abs(after.hold.amount - before.hold.amount) <= 1
