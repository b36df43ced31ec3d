"""Addresses and networks, as staff write them and as servers tell of them."""

import pytest

from gateway.common.http import is_bounded, is_within, normal_network

LISTED = ["203.0.113.0/24", "2a01:4f8:d0a:30ff::2", "198.51.100.7"]


@pytest.mark.parametrize(
    "address",
    ["203.0.113.0", "203.0.113.255", "198.51.100.7", "2A01:4F8:D0A:30FF:0:0:0:2", "::ffff:203.0.113.9"],
)
def test_an_address_lies_within_however_it_is_written(address: str) -> None:
    assert is_within(address, LISTED)


@pytest.mark.parametrize(
    "address",
    [
        "203.0.114.0",
        "198.51.100.8",
        "2a01:4f8:d0a:30ff::3",
        "::ffff:198.51.100.8",
        # The same digits, but an address of another kind.
        "::203.0.113.9",
        "203.0.113.09",
        "203.0.113.9:443",
        "203.0.113",
        "unknown",
        "",
    ],
)
def test_another_address_and_an_invalid_one_are_outside_the_network(address: str) -> None:
    assert not is_within(address, LISTED)


def test_an_empty_list_contains_no_address() -> None:
    assert not is_within("203.0.113.7", [])


@pytest.mark.parametrize(
    ("written", "usual"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("203.0.113.7/32", "203.0.113.7"),
        ("203.0.113.0/24", "203.0.113.0/24"),
        ("2A01:4F8:0D0A:30FF::2", "2a01:4f8:d0a:30ff::2"),
    ],
)
def test_networks_have_one_form(written: str, usual: str) -> None:
    assert normal_network(written) == usual


@pytest.mark.parametrize("written", ["203.0.113.7/24", "203.0.113.0/33", "example.org", ""])
def test_an_invalid_network_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r"does not appear|has host bits"):
        normal_network(written)


@pytest.mark.parametrize(
    ("network", "bounded"),
    [
        ("203.0.113.7", True),
        ("10.0.0.0/8", True),
        ("2a01::/16", True),
        ("10.0.0.0/7", False),
        ("128.0.0.0/1", False),
        ("0.0.0.0/0", False),
        ("2a00::/15", False),
        ("::/0", False),
    ],
)
def test_a_network_of_half_the_internet_is_refused(network: str, bounded: bool) -> None:
    assert is_bounded(network) is bounded
