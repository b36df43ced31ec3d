"""EIP-4361, "Sign-In with Ethereum": the text that a wallet shows and signs."""

import secrets
import string
from datetime import UTC, datetime

_ALPHABET = string.ascii_letters + string.digits
# 22 letters of 62 are 131 bits.
_NONCE_LETTERS = 22


def new_nonce() -> str:
    """Return an unguessable alphanumeric nonce of more than 128 bits."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(_NONCE_LETTERS))


def compose(
    *,
    domain: str,
    address: str,
    statement: str,
    uri: str,
    chain_id: int,
    nonce: str,
    issued_at: datetime,
    expires_at: datetime,
) -> str:
    """Return the message; `address` is EIP-55 text and `statement` one line."""
    return "\n".join(
        [
            f"{domain} wants you to sign in with your Ethereum account:",
            address,
            "",
            statement,
            "",
            f"URI: {uri}",
            "Version: 1",
            f"Chain ID: {chain_id}",
            f"Nonce: {nonce}",
            f"Issued At: {_rfc3339(issued_at)}",
            f"Expiration Time: {_rfc3339(expires_at)}",
        ]
    )


def _rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
