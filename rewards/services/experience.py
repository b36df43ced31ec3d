"""Experience: gained by what a user does, taken back with what is undone. Once per key."""

from collections.abc import Collection
from typing import Any

from credits.errors import KeyConflict
from rewards.models import BadgeTrack, ExperienceEntry, Progress
from rewards.services import statements
from users.models import User


def open_progress(*, user_ids: Collection[int]) -> None:
    """Give these users progress without experience where they have none; callers may do so simultaneously."""
    rows = [Progress(user_id=user_id) for user_id in sorted(user_ids)]
    Progress.objects.bulk_create(rows, ignore_conflicts=True)


def gain(*, user: User, track: BadgeTrack, base: int, key: str, cause: str) -> ExperienceEntry:
    """
    Add floor(`base` × growth rate of the user's badge on that track).

    A repeated key returns the first entry and adds nothing. Runs inside the
    caller's transaction.

    Raises:
        KeyConflict: the key names another user's experience, another track, or the other direction.
        ValueError: `base` is not positive.
    """
    if base <= 0:
        raise ValueError("what is gained is a positive number")
    return _post(user=user, track=track, base=base, key=key, cause=cause)


def take_back(*, user: User, track: BadgeTrack, amount: int, key: str, cause: str) -> ExperienceEntry:
    """
    Take `amount` of experience back, as posted then; the total ends at 0 where there is less.

    A repeated key returns the first entry and takes nothing. Runs inside the
    caller's transaction.

    Raises:
        KeyConflict: the key names another user's experience, another track, or the other direction.
        ValueError: `amount` is not positive.
    """
    if amount <= 0:
        raise ValueError("what is taken back is a positive number")
    return _post(user=user, track=track, base=-amount, key=key, cause=cause)


def restore(*, user: User, track: BadgeTrack, amount: int, key: str, cause: str) -> ExperienceEntry:
    """
    Add `amount` of experience that was taken back before; it has grown already, and does not grow again.

    A repeated key returns the first entry and adds nothing. Runs inside the
    caller's transaction.

    Raises:
        KeyConflict: the key names another user's experience, another track, or the other direction.
        ValueError: `amount` is not positive.
    """
    if amount <= 0:
        raise ValueError("what is given again is a positive number")
    return _post(user=user, track=track, base=amount, key=key, cause=cause, grows=False)


def _post(
    *, user: User, track: BadgeTrack, base: int, key: str, cause: str, grows: bool = True
) -> ExperienceEntry:
    params = {
        "user": user.pk,
        "track": str(track),
        "base": base,
        "key": key,
        "cause": cause,
        "grows": grows,
    }
    while (entry := _insert(params) or _repeat(params)) is None:
        open_progress(user_ids=[user.pk])  # Nothing else can be missing.
    return entry


def _insert(params: dict[str, Any]) -> ExperienceEntry | None:
    return next(iter(ExperienceEntry.objects.raw(statements.POST_EXPERIENCE, params)), None)


def _repeat(params: dict[str, Any]) -> ExperienceEntry | None:
    """Return the first entry of the key, or None where there is none. How much it was is not compared: it grew."""
    first = ExperienceEntry.objects.select_related("progress").filter(key=params["key"]).first()
    if first is None:
        return None
    if (first.progress.user_id, first.track, first.base > 0) != (
        params["user"],
        params["track"],
        params["base"] > 0,
    ):
        raise KeyConflict(key=first.key)
    return first
