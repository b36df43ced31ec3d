"""Who calls, as far as the network shows. Proxies and servers spell addresses in several ways; this returns one."""

import ipaddress
import re

from django.conf import settings
from django.http import HttpRequest
from rest_framework.request import Request

UNKNOWN = "unknown"
# The smallest network that a provider gives a subscriber, who can change addresses within it at will.
_SUBSCRIBER_BITS = 64
_WITH_PORT = re.compile(r"\[(?P<six>[^\]]+)\](:\d+)?|(?P<four>[\d.]+):\d+")


def client_ip(request: Request | HttpRequest) -> str:
    """
    Return the caller's address as the outermost trusted proxy saw it; `unknown` if that is not an address.

    Only the `TRUSTED_PROXY_COUNT` rightmost entries of X-Forwarded-For were
    written by our own proxies; everything left of them is the caller's claim.
    Ports and brackets are left off, and IPv4 inside IPv6 is IPv4.
    """
    proxies: int = settings.TRUSTED_PROXY_COUNT
    forwarded = [
        part.strip() for part in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",") if part.strip()
    ]
    if proxies and len(forwarded) >= proxies:
        return _plain(str(forwarded[-proxies]))
    return _plain(str(request.META.get("REMOTE_ADDR", "")))


def client_ip_if_known(request: HttpRequest) -> str | None:
    """Return the caller's address for a database column; None if it is unknown."""
    found = client_ip(request)
    return None if found == UNKNOWN else found


def client_network(request: Request | HttpRequest) -> str:
    """Return whom a rate limit counts: an IPv4 address, or the /64 network of an IPv6 one."""
    found = client_ip(request)
    if ":" not in found:
        return found
    return str(ipaddress.IPv6Network((int(ipaddress.IPv6Address(found)), _SUBSCRIBER_BITS), strict=False))


def _plain(text: str) -> str:
    match = _WITH_PORT.fullmatch(text)
    bare = (match["six"] or match["four"]) if match else text
    try:
        # A zone (fe80::1%eth0) names an interface of the proxy, not the caller.
        address = ipaddress.ip_address(bare.partition("%")[0])
    except ValueError:
        return UNKNOWN
    inner = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(inner or address)
