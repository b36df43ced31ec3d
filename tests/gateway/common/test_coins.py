"""Wei are shown in LYX, exactly before they are rounded."""

import pytest

from gateway.common.coins import in_lyx


@pytest.mark.parametrize(
    ("wei", "places", "shown"),
    [
        (0, 4, "0.0000 LYX"),
        (10**17, 4, "0.1000 LYX"),
        (-15 * 10**17, 1, "-1.5 LYX"),
        (1_234_567 * 10**18 + 10**12, 6, "1,234,567.000001 LYX"),
    ],
)
def test_an_amount_is_shown_in_lyx(wei: int, places: int, shown: str) -> None:
    assert in_lyx(wei, places=places) == shown
