"""
Google's verifier keys: fetched by beat, read by requests.

A postback never waits for another network. Keys are kept for a day at most, as Google
asks; until a key has been fetched, its postbacks are asked to come again.
"""

import logging
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from credits.models import AdNetwork, VerifierKeySet
from gateway.common.fetching import FetchFailed, fetch_json

logger = logging.getLogger(__name__)
LONGEST_KEPT = timedelta(hours=24)
_SLUG = "admob"


def refresh(*, now: datetime) -> bool:
    """Fetch and store the keys; return whether that worked. Where AdMob is not enabled there is nothing to do."""
    if not AdNetwork.objects.filter(slug=_SLUG, is_enabled=True).exists():
        return False
    try:
        keys = _read(fetch_json(settings.ADMOB_KEYS_URL))
    except (FetchFailed, ValueError) as error:
        logger.warning("the verifier keys cannot be fetched, the last ones stay: %s", error)
        return False
    VerifierKeySet.objects.update_or_create(slug=_SLUG, defaults={"keys": keys, "fetched_at": now})
    return True


def _read(document: Any) -> dict[str, str]:
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise ValueError("the answer is no list of keys")
    found = {
        str(key["keyId"]): key["pem"]
        for key in listed
        if isinstance(key, dict) and isinstance(key.get("pem"), str) and "keyId" in key
    }
    if not found:
        raise ValueError("the list holds no usable key")
    return found
