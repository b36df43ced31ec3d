"""The fees offered per gas."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.chain.fees import Fees, FeesTooHigh, bump, quote_fees

GWEI = 10**9
_WEI = st.integers(0, 10**12)


@pytest.mark.parametrize(
    ("base", "tip", "floor", "cap", "fees"),
    [
        (GWEI, GWEI, GWEI, 20 * GWEI, Fees(3 * GWEI, GWEI, 2 * GWEI)),
        (7, 0, GWEI, 20 * GWEI, Fees(GWEI, 0, 7)),
        (15 * GWEI, GWEI, GWEI, 20 * GWEI, Fees(20 * GWEI, GWEI, 16 * GWEI)),
        (19 * GWEI, 2 * GWEI, GWEI, 20 * GWEI, Fees(20 * GWEI, GWEI, 20 * GWEI)),
        (20 * GWEI, 0, GWEI, 20 * GWEI, Fees(20 * GWEI, 0, 20 * GWEI)),
    ],
)
def test_the_fee_cap_allows_the_base_fee_to_double(
    base: int, tip: int, floor: int, cap: int, fees: Fees
) -> None:
    assert quote_fees(base_fee_wei=base, tip_wei=tip, floor_wei=floor, cap_wei=cap) == fees


@pytest.mark.parametrize(("base", "tip"), [(20 * GWEI + 1, 0), (20 * GWEI, GWEI), (19 * GWEI, 3 * GWEI)])
def test_a_chain_above_the_cap_is_refused_for_now(base: int, tip: int) -> None:
    with pytest.raises(FeesTooHigh) as refused:
        quote_fees(base_fee_wei=base, tip_wei=tip, floor_wei=GWEI, cap_wei=20 * GWEI)
    assert (refused.value.status, refused.value.retryable, refused.value.retry_after) == (503, True, 60)
    assert refused.value.members["maximumPricePerGasWei"] == str(20 * GWEI)


@given(_WEI, _WEI, _WEI, st.integers(1, 10**12))
def test_an_offer_can_always_be_signed_and_mined(base: int, tip: int, floor: int, cap: int) -> None:
    try:
        fees = quote_fees(base_fee_wei=base, tip_wei=tip, floor_wei=floor, cap_wei=cap)
    except FeesTooHigh:
        return
    assert base <= fees.max_fee_per_gas_wei <= cap
    assert 0 <= fees.max_priority_fee_per_gas_wei <= fees.max_fee_per_gas_wei
    assert base <= fees.expected_price_wei <= fees.max_fee_per_gas_wei


@given(st.lists(_WEI, min_size=3, max_size=3).map(sorted))
def test_a_bump_is_an_eighth_in_both_parts_or_none(wei: list[int]) -> None:
    tip, highest, cap = wei
    fees = Fees(highest, tip, highest)
    bumped = bump(fees, cap_wei=cap)
    if bumped is None:
        assert 8 * cap < 9 * highest + 8
        return
    assert bumped.max_fee_per_gas_wei <= cap
    assert bumped.expected_price_wei <= bumped.max_fee_per_gas_wei
    assert 8 * bumped.max_fee_per_gas_wei >= 9 * highest
    assert 8 * bumped.max_priority_fee_per_gas_wei >= 9 * tip
    assert bumped.max_priority_fee_per_gas_wei > tip
