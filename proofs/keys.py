"""
The keys of the ledger's roots: one worker process holds the key that signs; all public keys verify.

The database contains no private key, so an attacker who rewrites it cannot sign the result.
"""

import re
from functools import lru_cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from users.keys import ES256, HALF_BYTES, has_signed, parse_keys, public_jwk

_PEM_KEY = re.compile(r"-----BEGIN PUBLIC KEY-----.+?-----END PUBLIC KEY-----", re.DOTALL)
PublicKeys = dict[str, EllipticCurvePublicKey]


def sign(text: str) -> tuple[str, str]:
    """
    Return the id of the key that signs, and the ES256 signature of the text: r and s, in hex.

    Raises:
        ImproperlyConfigured: `LEDGER_SIGNING_KEY` is missing, or is not an EC P-256 private key.
    """
    key = parse_keys(settings.LEDGER_SIGNING_KEY, setting="LEDGER_SIGNING_KEY")[0]
    halves = decode_dss_signature(key.private_key.sign(text.encode(), ES256))
    return key.kid, b"".join(half.to_bytes(HALF_BYTES, "big") for half in halves).hex()


def is_signed(text: str, signature: str, key_id: str, keys: PublicKeys) -> bool:
    """Return whether `keys` contains the key of that id, and it signed the text."""
    key = keys.get(key_id)
    if key is None or not re.fullmatch(f"[0-9a-f]{{{4 * HALF_BYTES}}}", signature):
        return False
    return has_signed(key, text.encode(), bytes.fromhex(signature))


def public_keys() -> PublicKeys:
    """Return the keys of `LEDGER_PUBLIC_KEYS` and, if it is set, the public half of the signing key, by id."""
    keys = parse_public_keys(settings.LEDGER_PUBLIC_KEYS)
    if settings.LEDGER_SIGNING_KEY:
        own = parse_keys(settings.LEDGER_SIGNING_KEY, setting="LEDGER_SIGNING_KEY")[0]
        return {own.kid: own.public_key, **keys}
    return keys


def public_key_set() -> list[dict[str, Any]]:
    return [public_jwk(key) for key in public_keys().values()]


@lru_cache(maxsize=4)
def parse_public_keys(text: str) -> PublicKeys:
    """
    Return the PEM public keys of a text by their ids.

    Raises:
        ImproperlyConfigured: one of them is not an EC P-256 public key.
    """
    keys = (_load(match.group()) for match in _PEM_KEY.finditer(text.replace("\\n", "\n")))
    return {public_jwk(key)["kid"]: key for key in keys}


def _load(pem: str) -> EllipticCurvePublicKey:
    try:
        key = load_pem_public_key(pem.encode())
    except ValueError as error:
        raise ImproperlyConfigured("LEDGER_PUBLIC_KEYS holds a key that cannot be read.") from error
    if not isinstance(key, EllipticCurvePublicKey) or not isinstance(key.curve, SECP256R1):
        raise ImproperlyConfigured("LEDGER_PUBLIC_KEYS must hold EC P-256 keys only.")
    return key
