"""IP addresses and networks, as staff write them."""

import ipaddress
from collections.abc import Iterable


def normal_network(text: str) -> str:
    """
    Return an IP address or network in its usual form.

    Raises:
        ValueError: it is neither, or a network with bits of a host.
    """
    network = ipaddress.ip_network(text)
    return str(network.network_address) if network.num_addresses == 1 else str(network)


# Wider than any registry hands out at once, by IP version.
_WIDEST = {4: 8, 6: 16}


def is_bounded(network: str) -> bool:
    """Tell whether an address or network is narrow enough to say who is meant: no wider than /8, of IPv6 /16."""
    found = ipaddress.ip_network(network)
    return found.prefixlen >= _WIDEST[found.version]


def is_within(address: str, networks: Iterable[str]) -> bool:
    """
    Tell whether the address lies in one of the networks; what is no address lies in none.

    A socket that serves both protocols tells of 203.0.113.7 as ::ffff:203.0.113.7, which is the same sender.
    """
    try:
        told = ipaddress.ip_address(address)
    except ValueError:
        return False
    found = (isinstance(told, ipaddress.IPv6Address) and told.ipv4_mapped) or told
    return any(found in ipaddress.ip_network(text) for text in networks)
