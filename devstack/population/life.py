"""One life: rows that are not saved yet, and the totals that they add up to."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from itertools import count
from math import floor
from typing import Any

from credits.models import CreditAccount, CreditEntry, CreditHold, EntrySource
from devstack.population.town import Town
from earnings.models import NetworkUser
from rewards.models import Badge, BadgeTrack, ExperienceEntry, Modifier, Progress
from rewards.rules import Benefits, benefits_of
from users.models import User

Action = Callable[["Life", datetime], None]
_EARNED = {EntrySource.PUSH_ADS, EntrySource.VIDEO_ADS, EntrySource.OFFERWALL, EntrySource.SURVEYS}


@dataclass
class Life:
    """
    A user, what happened to them, and what is still to happen.

    `rows` holds everything else than the ledger's rows, in the order in which it has to be saved.
    """

    town: Town
    user: User
    account: CreditAccount
    progress: Progress
    controller: str
    key_manager: str
    is_proven: bool = False
    relay_nonce: int = 0
    entries: list[CreditEntry] = field(default_factory=list)
    experience: list[ExperienceEntry] = field(default_factory=list)
    holds: list[CreditHold] = field(default_factory=list)
    modifiers: list[Modifier] = field(default_factory=list)
    names: dict[str, NetworkUser] = field(default_factory=dict)
    attempts_by_day: dict[date, int] = field(default_factory=dict)
    rows: list[Any] = field(default_factory=list)
    _ahead: list[tuple[datetime, int, Action]] = field(default_factory=list)
    _places: Any = field(default_factory=count)

    def plan(self, at: datetime, action: Action) -> None:
        """Let something happen at a time; what would happen later than now does not."""
        if at < self.town.now:
            heapq.heappush(self._ahead, (at, next(self._places), action))

    def live(self) -> None:
        """Let everything happen that is planned, in the order of time."""
        while self._ahead:
            at, _, action = heapq.heappop(self._ahead)
            action(self, at)

    @property
    def badge(self) -> Badge:
        """The permanent badge worn."""
        reached = [it for it in self.town.ladder if it.exp_lower_bound <= self.progress.permanent_experience]
        return reached[-1]

    def benefits(self, at: datetime) -> Benefits:
        """Return what badge and active modifiers amount to."""
        active = [it for it in self.modifiers if it.created_at <= at < it.expires_at]
        return benefits_of(badges=[self.badge], modifiers=active)

    def post(
        self,
        source: EntrySource,
        amount: int,
        key: str,
        at: datetime,
        *,
        reason: str = "",
        by: User | None = None,
    ) -> CreditEntry:
        """Add an entry to the chain."""
        account = self.account
        entry = CreditEntry(
            account=account,
            amount=amount,
            source=source,
            key=key,
            balance_before=account.balance,
            balance_after=account.balance + amount,
            account_version=account.version + 1,
            actor=by,
            reason=reason,
            created_at=at,
        )
        account.balance, account.version = entry.balance_after, entry.account_version
        self.entries.append(entry)
        self.is_proven |= source in _EARNED
        return entry

    def gain(self, base: int, key: str, cause: str, at: datetime) -> int:
        """Gain experience at the badge's growth rate; return how much."""
        amount = floor(base * Fraction(self.badge.exp_growth_rate))
        self._learn(base, amount, key, cause, at)
        return amount

    def unlearn(self, amount: int, key: str, cause: str, at: datetime) -> None:
        """Lose experience; the total ends at 0 where there is less."""
        self._learn(-amount, max(-amount, -self.progress.permanent_experience), key, cause, at)

    def _learn(self, base: int, amount: int, key: str, cause: str, at: datetime) -> None:
        self.progress.permanent_experience += amount
        self.experience.append(
            ExperienceEntry(
                progress=self.progress,
                track=BadgeTrack.PERMANENT,
                base=base,
                amount=amount,
                total_after=self.progress.permanent_experience,
                key=key,
                cause=cause,
                created_at=at,
            )
        )
