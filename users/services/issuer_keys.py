"""
The external issuer's keys: fetched by beat, read by requests.

A request never waits for the issuer's network, and an issuer that is away signs
nobody out: the last good set stays in force.
"""

import logging
from datetime import datetime
from typing import Any

from django.conf import settings

from gateway.common.fetching import FetchFailed, fetch_json
from users.models import IssuerKeySet

logger = logging.getLogger(__name__)
_PUBLIC_KEY_TYPES = {"EC", "RSA", "OKP"}


def refresh(*, now: datetime) -> bool:
    """Fetch and store the issuer's keys; return whether that worked. Without an issuer there is nothing to do."""
    url = settings.AUTH_EXTERNAL_JWKS_URL
    if not url:
        return False
    try:
        keys = _usable_keys(fetch_json(url))
    except (FetchFailed, ValueError) as error:
        logger.warning("the issuer's keys cannot be fetched, the last ones stay: %s", error)
        return False
    IssuerKeySet.objects.update_or_create(url=url, defaults={"keys": keys, "fetched_at": now})
    return True


def _usable_keys(document: Any) -> list[dict[str, Any]]:
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise ValueError("the answer is no key set")
    found = [key for key in listed if isinstance(key, dict) and _is_usable(key)]
    if not found:
        # An empty set would sign everybody out; an issuer that means it removes the setting.
        raise ValueError("the key set holds no usable key")
    return found


def _is_usable(key: dict[str, Any]) -> bool:
    # A symmetric key in a public document would let anybody sign.
    return (
        key.get("kty") in _PUBLIC_KEY_TYPES
        and isinstance(key.get("kid"), str)
        and key.get("use") in {None, "sig"}
    )
