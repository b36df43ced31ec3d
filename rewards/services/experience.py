"""
Experience: gained by activity, and taken back by reversals.

Posting runs inside the caller's transaction, once per key: a repeated key returns the first entry and
changes nothing. `KeyConflict` reports a key that was used with another user, track or direction, and
`ValueError` an amount that is not positive.
"""

from collections.abc import Collection
from typing import Any

from credits.errors import KeyConflict
from gateway.common import db
from rewards.models import BadgeTrack, ExperienceEntry
from rewards.services.statements import Sql
from users.models import User


def open_progress(*, user_ids: Collection[int]) -> None:
    """Create empty progress rows for users without one; safe under concurrency."""
    db.all_rows(Sql.open_progress, {"users": sorted(user_ids)})


def gain(*, user: User, track: BadgeTrack, base: int, key: str, cause: str) -> ExperienceEntry:
    """Add experience on the track: floor(`base` × growth rate of the user's badge on it)."""
    return _post(user=user, track=track, base=base, key=key, cause=cause)


def take_back(*, user: User, track: BadgeTrack, amount: int, key: str, cause: str) -> ExperienceEntry:
    """Take back posted experience, without a growth rate; the total never falls below 0."""
    return _post(user=user, track=track, base=amount, key=key, cause=cause, is_taken=True)


def restore(*, user: User, track: BadgeTrack, amount: int, key: str, cause: str) -> ExperienceEntry:
    """Restore experience that was taken back; the growth rate is not applied again."""
    return _post(user=user, track=track, base=amount, key=key, cause=cause, grows=False)


def _post(
    *,
    user: User,
    track: BadgeTrack,
    base: int,
    key: str,
    cause: str,
    grows: bool = True,
    is_taken: bool = False,
) -> ExperienceEntry:
    if base <= 0:
        raise ValueError("experience changes by a positive number")
    params = {
        "user": user.pk,
        "track": str(track),
        "base": -base if is_taken else base,
        "key": key,
        "cause": cause,
        "grows": grows,
    }
    while (entry := _insert(params) or _repeat(params)) is None:
        open_progress(user_ids=[user.pk])  # Only the progress row can be missing.
    return entry


def _insert(params: dict[str, Any]) -> ExperienceEntry | None:
    return next(iter(ExperienceEntry.objects.raw(Sql.post_experience, params)), None)


def _repeat(params: dict[str, Any]) -> ExperienceEntry | None:
    first = ExperienceEntry.objects.select_related("progress").filter(key=params["key"]).first()
    if first is None:
        return None
    # The amounts are not compared, because the growth rate may have changed.
    same = (params["user"], params["track"], params["base"] > 0)
    if (first.progress.user_id, first.track, first.base > 0) != same:
        raise KeyConflict(key=first.key)
    return first
