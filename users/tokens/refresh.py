"""
Refresh tokens: opaque, good for one exchange, stored as a hash.

A child is the HMAC of its parent under a server secret. Nobody else can compute it,
and we can compute it again: a client whose answer got lost repeats its request and
receives the very same child, although no token is ever stored in clear.
"""

import hmac
import secrets
from base64 import urlsafe_b64encode
from hashlib import sha256

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

# Lets scanners find leaked tokens, and lets us distinguish a misplaced one from garbage.
PREFIX = "rt_"
_RANDOM_BYTES = 32


def new_token() -> str:
    """Return the first token of a family."""
    return PREFIX + _text(secrets.token_bytes(_RANDOM_BYTES))


def child_of(token: str) -> str:
    """Return the one token that `token` may be exchanged for."""
    if not settings.AUTH_REFRESH_SECRET:
        raise ImproperlyConfigured("This process has no AUTH_REFRESH_SECRET.")
    return PREFIX + _text(hmac.digest(settings.AUTH_REFRESH_SECRET.encode(), token.encode(), "sha256"))


def hash_of(token: str) -> str:
    """Return the hash that is stored of a token; its 256 random bits need no slow one."""
    return sha256(token.encode()).hexdigest()


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()
