"""The chain that a process serves, as the settings describe it."""

import secrets
from typing import Any

import pytest

from gateway.chain.config import get_chain
from gateway.chain.fees import FeePolicy


def test_the_fee_settings_are_the_fee_policy(settings: Any) -> None:
    settings.RELAY_FEE_FLOOR_WEI, settings.RELAY_FEE_CAP_WEI = 3, 17
    settings.RELAY_TIP_WEI, settings.RELAY_TIP_CAP_WEI = 5, 7
    assert get_chain().fees == FeePolicy(floor_wei=3, cap_wei=17, tip_wei=5, tip_cap_wei=7)


def test_a_transaction_has_a_page_at_the_explorer(settings: Any) -> None:
    settings.EXPLORER_URL = f"https://{secrets.token_hex(4)}.example"
    name = "0x" + secrets.token_hex(20)
    assert get_chain().transaction_page(name) == f"{settings.EXPLORER_URL}/tx/{name}"


def test_without_an_explorer_nothing_has_a_page(settings: Any) -> None:
    settings.EXPLORER_URL = ""
    assert get_chain().transaction_page("0x00") == ""


@pytest.mark.parametrize(
    ("wei", "places", "shown"),
    [
        (0, 4, "0.0000 LYX"),
        (10**17, 4, "0.1000 LYX"),
        (-15 * 10**17, 1, "-1.5 LYX"),
        (1_234_567 * 10**18 + 10**12, 6, "1,234,567.000001 LYX"),
    ],
)
def test_an_amount_is_shown_in_the_chains_currency(wei: int, places: int, shown: str) -> None:
    assert get_chain().amount(wei, places=places) == shown


@pytest.mark.parametrize(("floor_wei", "cap_wei", "new_call_cap_wei"), [(1, 10, 8), (9, 10, 9), (10, 10, 10)])
def test_the_fee_of_a_new_call_is_four_fifths_of_the_cap_and_at_least_the_floor(
    floor_wei: int, cap_wei: int, new_call_cap_wei: int
) -> None:
    assert FeePolicy(floor_wei, cap_wei, 0, 0).new_call_cap_wei == new_call_cap_wei


@pytest.mark.parametrize(("market", "offered"), [(0, 3), (3, 3), (5, 5), (8, 8), (9, 8), (10**12, 8)])
def test_the_tip_follows_the_market_between_its_two_bounds(market: int, offered: int) -> None:
    assert FeePolicy(1, 100, tip_wei=3, tip_cap_wei=8).tip_for(market) == offered
