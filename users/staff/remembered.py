"""Figures that are cached for a short while: they sum a month, and nobody needs them to the second."""

import dataclasses
import json
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.cache import caches
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)

# Change the number when the shape changes: a release must not read figures of the one before.
_KEY = "staff:figures:2"


def figures(compute: Callable[..., dict[str, Any]], *, now: datetime) -> dict[str, Any]:
    """
    Return what `compute(now=…)` last said within `STAFF_FIGURES_SECONDS`, as plain values, with `as_of`.

    Without the cache they are computed anew, so the page only takes longer.
    """
    known = _recall()
    if known is None:
        known = _plain({**compute(now=now), "as_of": f"{now:%H:%M:%S} UTC"})
        _remember(known)
    return known


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    """Return the figures as they come back from the cache, so that a page never sees the difference."""
    plain: dict[str, Any] = json.loads(json.dumps(found, default=dataclasses.asdict))
    return plain


def _recall() -> dict[str, Any] | None:
    if not settings.STAFF_FIGURES_SECONDS:
        return None
    try:
        known: dict[str, Any] | None = caches["figures"].get(_KEY)
    except RedisError as error:
        logger.warning("the figures cannot be recalled: %s", type(error).__name__)
        return None
    return known


def _remember(found: dict[str, Any]) -> None:
    if not settings.STAFF_FIGURES_SECONDS:
        return
    try:
        caches["figures"].set(_KEY, found, timeout=settings.STAFF_FIGURES_SECONDS)
    except RedisError as error:
        logger.warning("the figures cannot be remembered: %s", type(error).__name__)
