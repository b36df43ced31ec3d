"""
The experience and benefits of many users while a batch is decided.

`lock` reads them in few statements and locks their experience. Gains and losses are added up in memory, because each
change may move the badge whose growth rate applies to the next one. `post` writes all changes in one statement.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from credits.queries import running_allowance
from gateway.common import db
from rewards.models import Badge, BadgeTrack, Modifier, Progress
from rewards.rules import Benefits, badge_at, benefits_of, grown
from rewards.services.experience import open_progress
from rewards.services.statements import Sql


class _Change(NamedTuple):
    base: int
    amount: int
    key: str
    cause: str


@dataclass
class Standing:
    """A user's permanent experience, with the badges and modifiers that determine the benefits."""

    user_id: int
    experience: int
    levels: list[Badge]
    # The subscriber badge, only while the user's allowance runs.
    subscriber_badge: Badge | None
    modifiers: list[Modifier]
    _changes: list[_Change] = field(default_factory=list)

    @property
    def _badge(self) -> Badge:
        level = badge_at(self.levels, self.experience)
        return level or Badge(track=BadgeTrack.PERMANENT, exp_lower_bound=0)

    @property
    def benefits(self) -> Benefits:
        badges = [self._badge, self.subscriber_badge] if self.subscriber_badge else [self._badge]
        return benefits_of(badges=badges, modifiers=self.modifiers)

    def gain(self, *, base: int, key: str, cause: str) -> int:
        """Add `base` times the badge's growth rate, rounded down; return the added experience."""
        level = badge_at(self.levels, self.experience)
        amount = grown(base=base, rate=level.exp_growth_rate) if level else base
        self._change(base, amount, key, cause)
        return amount

    def take_back(self, *, amount: int, key: str, cause: str) -> None:
        """Take back experience as posted; the total never falls below 0."""
        self._change(-amount, max(-amount, -self.experience), key, cause)

    def _change(self, base: int, amount: int, key: str, cause: str) -> None:
        self.experience += amount
        self._changes.append(_Change(base, amount, key, cause))

    def take_changes(self) -> list[_Change]:
        """Return the changes that are not posted yet, and forget them."""
        changes, self._changes = self._changes, []
        return changes


def lock(*, user_ids: Collection[int], now: datetime) -> dict[int, Standing]:
    """
    Lock the users' experience until the transaction ends, and return each standing.

    Modifiers use the database's clock.
    """
    ids = sorted(set(user_ids))
    if len(rows := _locked(ids)) < len(ids):
        open_progress(user_ids=ids)
        rows = _locked(ids)
    modifiers: dict[int, list[Modifier]] = {user_id: [] for user_id in ids}
    for modifier in Modifier.objects.active().filter(user_id__in=ids).order_by("id"):
        modifiers[modifier.user_id].append(modifier)
    levels = list(Badge.objects.all())
    permanent, subscriber = (
        [level for level in levels if level.track == track]
        for track in (BadgeTrack.PERMANENT, BadgeTrack.SUBSCRIBER)
    )
    return {
        row.user_id: Standing(
            user_id=row.user_id,
            experience=row.permanent_experience,
            levels=permanent,
            subscriber_badge=badge_at(subscriber, row.subscriber_experience)
            if running_allowance(getattr(row.user, "allowance", None), now=now)
            else None,
            modifiers=modifiers[row.user_id],
        )
        for row in rows
    }


def _locked(user_ids: list[int]) -> list[Progress]:
    own = Progress.objects.select_for_update(of=("self",), no_key=True).filter(user_id__in=user_ids)
    return list(own.select_related("user__allowance").order_by("user_id"))


def post(standings: Iterable[Standing]) -> None:
    """Post all changes of these locked standings. A repeated key fails the whole statement."""
    changes = [(row.user_id, *change) for row in standings for change in row.take_changes()]
    if not changes:
        return
    users, bases, amounts, keys, causes = (list(column) for column in zip(*changes, strict=True))
    params = {"users": users, "bases": bases, "amounts": amounts, "keys": keys, "causes": causes}
    db.all_rows(Sql.post_changes, params)
