"""
Network addresses of callers, IP networks as staff write them, and JSON documents of other parties.

Proxies and servers spell an address in several ways; the functions here return one spelling.
"""

import ipaddress
import json
import re
from collections.abc import Iterable
from typing import Any

import urllib3
from django.conf import settings
from django.http import HttpRequest
from rest_framework.request import Request
from urllib3.exceptions import HTTPError

# The content security policy of responses that are not pages: load nothing, and allow no frames.
POLICY_OF_DATA = "default-src 'none'; frame-ancestors 'none'"
# Cache headers for responses with personal data or secrets.
PRIVATE = {"Cache-Control": "no-store"}
UNKNOWN = "unknown"
# The smallest network that a provider assigns to a customer, who can use any address in it.
_SUBSCRIBER_BITS = 64
# The usual network of one organisation, by IP version.
_SITE_BITS = {4: 24, 6: 48}
_WITH_PORT = re.compile(r"\[(?P<six>[^\]]+)\](:\d+)?|(?P<four>[\d.]+):\d+")


def client_ip(request: Request | HttpRequest) -> str:
    """
    Return the caller's address as the outermost trusted proxy saw it; `unknown` if that is not an address.

    Only the `TRUSTED_PROXY_COUNT` rightmost entries of X-Forwarded-For come from trusted proxies; the caller can forge
    the others. Ports and brackets are removed, and IPv4 inside IPv6 becomes IPv4.
    """
    proxies: int = settings.TRUSTED_PROXY_COUNT
    forwarded = [
        part.strip() for part in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",") if part.strip()
    ]
    if proxies and len(forwarded) >= proxies:
        return _plain(str(forwarded[-proxies]))
    return _plain(str(request.META.get("REMOTE_ADDR", "")))


def lockout_address(request: HttpRequest) -> str | None:
    """
    Return the address by which failed logins are counted, for a database column; None if it is unknown.

    For IPv6 this is the first address of the /64 network, because a caller can use any address of it.
    """
    network = client_network(request)
    return None if network == UNKNOWN else network.partition("/")[0]


def client_network(request: Request | HttpRequest) -> str:
    """Return the key of a rate limit: an IPv4 address, or the /64 network of an IPv6 address."""
    address = client_ip(request)
    return _network_of(address, _SUBSCRIBER_BITS) if ":" in address else address


def client_site(request: Request | HttpRequest) -> str:
    """Return the caller's network, about that of one organisation: the /24 of an IPv4, the /48 of an IPv6 address."""
    address = client_ip(request)
    return address if address == UNKNOWN else _network_of(address, _SITE_BITS[6 if ":" in address else 4])


def _network_of(address: str, bits: int) -> str:
    return str(ipaddress.ip_network(f"{address}/{bits}", strict=False))


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


_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@]+", re.ASCII)
_ORIGIN_LENGTH = 200


def normal_origin(text: str) -> str:
    """Return a web origin such as `https://wallet.example` in lower case; empty for other text."""
    origin = text.strip().lower()
    return origin if len(origin) <= _ORIGIN_LENGTH and _ORIGIN.fullmatch(origin) else ""


def origin_of(request: Request | HttpRequest) -> str:
    """Return the origin of the page or extension that sent the request; empty without a valid Origin header."""
    return normal_origin(str(request.META.get("HTTP_ORIGIN", "")))


def normal_network(text: str) -> str:
    """
    Return an IP address or network in its usual form.

    Raises:
        ValueError: the text is neither, or a network with host bits set.
    """
    network = ipaddress.ip_network(text)
    return str(network.network_address) if network.num_addresses == 1 else str(network)


# The widest networks that are still accepted, by IP version.
_WIDEST = {4: 8, 6: 16}


def is_bounded(network: str) -> bool:
    """Return whether an address or network is narrow enough to identify a sender: at most /8, or /16 in IPv6."""
    parsed = ipaddress.ip_network(network)
    return parsed.prefixlen >= _WIDEST[parsed.version]


def is_within(address: str, networks: Iterable[str]) -> bool:
    """
    Return whether the address is in one of the networks; text that is not an address is in none.

    A socket for both protocols reports 203.0.113.7 as ::ffff:203.0.113.7, which is the same sender.
    """
    try:
        sender = ipaddress.ip_address(address)
    except ValueError:
        return False
    plain = (isinstance(sender, ipaddress.IPv6Address) and sender.ipv4_mapped) or sender
    return any(plain in ipaddress.ip_network(text) for text in networks)


_MAX_BYTES = 256 * 1024
_http = urllib3.PoolManager(timeout=urllib3.Timeout(connect=3, read=5), retries=False)


class FetchFailed(Exception):
    """There was no response, or it is not a JSON document; the message does not quote the response."""


def fetch_json(url: str) -> Any:
    """
    Return the JSON document at this address. Redirects are not followed.

    Raises:
        FetchFailed: no response in time, a status other than 200, more than 256 KiB, or not JSON.
    """
    try:
        status, body = _get(url)
    except HTTPError as error:
        raise FetchFailed(f"no response ({type(error).__name__})") from error
    if status != 200:
        raise FetchFailed(f"status {status}")
    if len(body) > _MAX_BYTES:
        raise FetchFailed(f"more than {_MAX_BYTES} bytes")
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise FetchFailed("no JSON") from error


def _get(url: str) -> tuple[int, bytes]:
    # A connection kept for the next request could be forgotten by a firewall, and let it wait in vain.
    headers = {"Accept": "application/json", "Connection": "close"}
    response = _http.request("GET", url, preload_content=False, redirect=False, headers=headers)
    try:
        return response.status, response.read(_MAX_BYTES + 1)
    finally:
        response.release_conn()
