"""The message is the grammar of EIP-4361, whatever time zone the clock speaks."""

import re
from datetime import UTC, datetime, timedelta, timezone

from tests.factories import random_address
from users import siwe

# The ABNF of EIP-4361, written as one expression for the fields that are used here.
_GRAMMAR = re.compile(
    r"(?P<domain>[^\s/?#]+) wants you to sign in with your Ethereum account:\n"
    r"(?P<address>0x[0-9a-fA-F]{40})\n\n"
    r"(?P<statement>[^\n]+)\n\n"
    r"URI: (?P<uri>[a-z][a-z0-9+.-]*:\S+)\n"
    r"Version: 1\n"
    r"Chain ID: (?P<chain>[0-9]+)\n"
    r"Nonce: (?P<nonce>[a-zA-Z0-9]{8,})\n"
    r"Issued At: (?P<issued>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)\n"
    r"Expiration Time: (?P<expires>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"
)


def test_the_message_parses_back_into_its_fields() -> None:
    nonce, address = siwe.new_nonce(), random_address()
    issued = datetime(2030, 1, 1, 0, 30, tzinfo=timezone(timedelta(hours=2)))

    message = siwe.compose(
        domain="relay.example:8443",
        address=address,
        statement="Sign in.",
        uri="https://relay.example:8443",
        chain_id=42,
        nonce=nonce,
        issued_at=issued,
        expires_at=datetime(2030, 1, 1, tzinfo=UTC),
    )

    match = _GRAMMAR.fullmatch(message)
    assert match is not None
    assert match.groupdict() == {
        "domain": "relay.example:8443",
        "address": address,
        "statement": "Sign in.",
        "uri": "https://relay.example:8443",
        "chain": "42",
        "nonce": nonce,
        "issued": "2029-12-31T22:30:00.000Z",
        "expires": "2030-01-01T00:00:00.000Z",
    }
