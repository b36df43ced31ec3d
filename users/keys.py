"""The service's signing keys: the first signs and all of them verify, so that a key can be rotated."""

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
)
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from jwt.algorithms import ECAlgorithm
from jwt.utils import base64url_encode

_PEM_KEY = re.compile(r"-----BEGIN (?P<label>[A-Z ]*PRIVATE KEY)-----.+?-----END (?P=label)-----", re.DOTALL)
_THUMBPRINT_MEMBERS = ("crv", "kty", "x", "y")
ES256 = ECDSA(SHA256())
# The length in bytes of r and of s.
HALF_BYTES = 32


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key pair and its `kid`, the RFC 7638 thumbprint of the public half."""

    kid: str
    private_key: EllipticCurvePrivateKey
    public_key: EllipticCurvePublicKey
    public_jwk: dict[str, Any]


def signing_keys() -> tuple[SigningKey, ...]:
    """
    Return the keys of `AUTH_SIGNING_KEYS` in their order.

    Raises:
        ImproperlyConfigured: there is no key, a key is not an EC P-256 private key, or a key is duplicate.
    """
    return parse_keys(settings.AUTH_SIGNING_KEYS, setting="AUTH_SIGNING_KEYS")


def public_key_set() -> dict[str, Any]:
    """Return the JSON Web Key Set that verifies our access tokens."""
    return {"keys": [key.public_jwk for key in signing_keys()]}


@lru_cache(maxsize=4)
def parse_keys(text: str, *, setting: str) -> tuple[SigningKey, ...]:
    """Return the PEM private keys of a setting; raises as `signing_keys` does, naming the setting."""
    # Environment files have a key on one line, with escaped newlines.
    keys = [_load(match.group(), setting) for match in _PEM_KEY.finditer(text.replace("\\n", "\n"))]
    if not keys:
        raise ImproperlyConfigured(f"{setting} contains no PEM private key.")
    if len({key.kid for key in keys}) < len(keys):
        raise ImproperlyConfigured(f"{setting} contains the same key twice.")
    return tuple(keys)


def _load(pem: str, setting: str) -> SigningKey:
    try:
        private_key = load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError) as error:
        raise ImproperlyConfigured(f"{setting} contains an unreadable key.") from error
    if not isinstance(private_key, EllipticCurvePrivateKey) or not isinstance(private_key.curve, SECP256R1):
        raise ImproperlyConfigured(f"{setting} must contain EC P-256 keys only.")
    public_key = private_key.public_key()
    jwk = public_jwk(public_key)
    return SigningKey(jwk["kid"], private_key, public_key, jwk)


def public_jwk(public_key: EllipticCurvePublicKey) -> dict[str, Any]:
    """Return the key as a JSON Web Key, whose `kid` is its RFC 7638 thumbprint."""
    jwk = ECAlgorithm.to_jwk(public_key, as_dict=True)
    return {**jwk, "kid": _thumbprint(jwk), "use": "sig", "alg": "ES256"}


def _thumbprint(jwk: dict[str, Any]) -> str:
    canonical = json.dumps(
        {name: jwk[name] for name in _THUMBPRINT_MEMBERS}, separators=(",", ":"), sort_keys=True
    )
    return base64url_encode(sha256(canonical.encode()).digest()).decode()


def has_signed(key: EllipticCurvePublicKey, message: bytes, signature: bytes) -> bool:
    """Return whether this is the key's ES256 signature of the message, r followed by s."""
    if len(signature) != 2 * HALF_BYTES:
        return False
    r, s = signature[:HALF_BYTES], signature[HALF_BYTES:]
    try:
        key.verify(encode_dss_signature(int.from_bytes(r), int.from_bytes(s)), message, ES256)
    except InvalidSignature:
        return False
    return True
