"""Holds closed and reopened with their rewards, as settlement and reorganisations do it."""

from collections.abc import Collection, Mapping
from datetime import datetime

from django.utils import timezone

from credits.services import holds
from rewards.services import cashback


def settle(costs: Mapping[int, int], *, now: datetime | None = None) -> None:
    """Close these holds at their costs, and reward all of their users."""
    cashback.reward(closed=holds.close(costs=costs), now=now or timezone.now())


def reverse(hold_ids: Collection[int]) -> None:
    """Reopen these holds, and take back their rewards."""
    cashback.reverse(reopened=holds.reopen(hold_ids=hold_ids))
