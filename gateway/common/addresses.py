"""IP addresses and networks, as staff write them."""

import ipaddress
from collections.abc import Iterable


def normal_network(text: str) -> str:
    """
    Return an IP address or network in its usual form.

    Raises:
        ValueError: it is neither, or a network with host bits set.
    """
    network = ipaddress.ip_network(text)
    return str(network.network_address) if network.num_addresses == 1 else str(network)


# The widest networks that are still accepted, by IP version.
_WIDEST = {4: 8, 6: 16}


def is_bounded(network: str) -> bool:
    """Return whether an address or network is narrow enough to identify a sender: at most /8, or /16 in IPv6."""
    found = ipaddress.ip_network(network)
    return found.prefixlen >= _WIDEST[found.version]


def is_within(address: str, networks: Iterable[str]) -> bool:
    """
    Return whether the address is in one of the networks; text that is not an address is in none.

    A socket for both protocols reports 203.0.113.7 as ::ffff:203.0.113.7, which is the same sender.
    """
    try:
        told = ipaddress.ip_address(address)
    except ValueError:
        return False
    found = (isinstance(told, ipaddress.IPv6Address) and told.ipv4_mapped) or told
    return any(found in ipaddress.ip_network(text) for text in networks)
