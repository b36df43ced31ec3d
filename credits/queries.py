"""What the ledger answers: balances, entries, the running allowance. Nothing here changes a row."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.contrib.auth import get_user_model
from django.db.models import QuerySet

from credits.benefits import PaidPeriod
from credits.models import Allowance, CreditAccount, CreditEntry
from gateway.common.fields import checksum
from gateway.common.owner import ProfileOwner


class Balance(NamedTuple):
    """Whole credits of a user; `available` is what a hold may take, negative in debt."""

    balance: int
    held: int
    available: int


@dataclass(frozen=True, kw_only=True)
class AllowanceView:
    """Credits paid out for the running period, and when they are counted anew."""

    credits: int
    ends_at: datetime


def account_of(user: ProfileOwner) -> CreditAccount | None:
    """Return the user's account, or None before it is opened."""
    return next(iter(CreditAccount.objects.filter(user_id=user.pk)), None)


def balance_of(user: ProfileOwner) -> Balance:
    """Return the user's credits; nothing at all before the account is opened."""
    account = account_of(user)
    return Balance(account.balance, account.held, account.available) if account else Balance(0, 0, 0)


def recent_entries(user: ProfileOwner, *, limit: int = 50) -> QuerySet[CreditEntry]:
    """Return the user's newest `limit` entries, newest first."""
    return CreditEntry.objects.filter(account__user_id=user.pk).order_by("-account_version")[:limit]


def current_allowance(*, user: ProfileOwner, now: datetime) -> AllowanceView | None:
    """Return the allowance that runs at `now`, or None for a user who is not subscribed."""
    found = next(iter(Allowance.objects.filter(user_id=user.pk)), None)
    if found is None:
        return None
    period = PaidPeriod(
        credits=found.credits,
        starts_at=found.starts_at,
        ends_at=found.ends_at,
        resets_at=found.resets_at,
        renews=found.renews,
    )
    if not period.runs_at(now):
        return None
    return AllowanceView(credits=period.credits, ends_at=period.reset_after(now))


def owner_of(address: str) -> ProfileOwner | None:
    """Return the user of a profile address in any casing, or None."""
    try:
        profile_address = checksum(address)
    except ValueError:
        return None
    return next(iter(get_user_model().objects.filter(profile_address=profile_address)), None)


def staff_named(username: str) -> ProfileOwner | None:
    """Return the active member of staff of that username, or None."""
    return next(iter(get_user_model().objects.filter(username=username, is_staff=True, is_active=True)), None)
