"""
The dashboard: the user's credits, badges, histories and check-in in one response.

The queries of the apps below provide it, in a fixed number of statements.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from django.conf import settings
from django.db.models import QuerySet

from checkin.queries import Calendar, CheckInStatus, DropLimit, calendar_of, drop_limit, status_of
from credits import queries as credits_queries
from credits.models import CreditAccount, CreditEntry
from credits.rules import Level, days_left, level_of
from credits.services import expiry
from credits.services.expiry import ExpiringCredits
from gateway.chain.config import home
from payments.queries import changed_amount_from, monthly_amount_of, subscription_status_of
from relay.queries.reports import ListedTransaction, Spending, spending_of, transactions_of
from relay.services.accepting.quota import Quota, quota_of
from rewards import queries as rewards_queries
from rewards.queries import CurrentRewards
from users.models import User

# Longer histories are read in pages.
_NEWEST = 100


class Earning(NamedTuple):
    """An entry of the ledger as the dashboard shows it."""

    source: str
    amount: int
    balance_before: int
    balance_after: int


@dataclass(frozen=True, kw_only=True)
class Dashboard:
    """Everything that the dashboard shows; whole credits, the subscription in major units."""

    account: CreditAccount
    rewards: CurrentRewards
    subscription_amount: Decimal
    check_in: CheckInStatus
    earnings: list[Earning]
    transactions: list[ListedTransaction]


def dashboard_of(*, user: User, now: datetime) -> Dashboard:
    """Return the user's dashboard at `now`, with the newest 100 of each history."""
    account = credits_queries.account_of(user)
    rewards = rewards_queries.current_rewards(user=user, now=now)
    newest = credits_queries.earnings_of(account).order_by("-account_version")
    return Dashboard(
        account=account,
        rewards=rewards,
        # A user whose first payment was declined is not a subscriber yet.
        subscription_amount=monthly_amount_of(user) if rewards.is_subscriber else Decimal(0),
        check_in=status_of(user=user, rewards=rewards, now=now),
        earnings=[Earning(*row) for row in newest.values_list(*Earning._fields)[:_NEWEST]],
        transactions=list(transactions_of(user).order_by("-id")[:_NEWEST]),
    )


@dataclass(frozen=True, kw_only=True)
class AccountSummary:
    """The summary of the account: `account` and `quota` in credits, and the current badges."""

    user: User
    account: CreditAccount
    quota: Quota
    rewards: CurrentRewards
    subscription_status: str | None
    # When the subscription's amount is first charged; None if the current period was paid with it.
    amount_from: datetime | None
    drop_limit: DropLimit
    # The credits that the account may owe.
    debt_limit: int


def account_summary_of(*, user: User, now: datetime) -> AccountSummary:
    """Return the user's balance, held credits, quota of the paid period, and badges at `now`."""
    rewards = rewards_queries.current_rewards(user=user, now=now)
    return AccountSummary(
        user=user,
        account=credits_queries.account_of(user),
        quota=quota_of(user_id=user.pk, now=now),
        rewards=rewards,
        subscription_status=subscription_status_of(user),
        amount_from=changed_amount_from(user, now=now) if rewards.is_subscriber else None,
        drop_limit=drop_limit(user=user, rewards=rewards),
        debt_limit=rewards_queries.debt_limit_of(user=user, now=now),
    )


class FirstSteps(NamedTuple):
    """Whether a newcomer has had credits, and has relayed a call."""

    had_credits: bool
    relayed_call: bool


@dataclass(frozen=True, kw_only=True)
class Home:
    """Figures of the first screen: how long the credits last, the cost of a call, and the check-in."""

    level: Level
    daily_use: int
    days_left: int | None
    expiring: list[ExpiringCredits]
    spending: Spending
    calendar: Calendar
    steps: FirstSteps


def home_of(*, user: User, now: datetime) -> Home:
    """Return how long the credits last, what calls cost, and the calendar of check-ins at `now`."""
    rewards = rewards_queries.current_rewards(user=user, now=now)
    available = credits_queries.balance_of(user).available
    use = credits_queries.daily_uses([user.pk], now=now).get(user.pk, 0)
    return Home(
        level=level_of(available=available, use=use),
        daily_use=use,
        days_left=days_left(available=available, use=use),
        expiring=expiry.expiring_of(user=user, now=now),
        spending=spending_of(user=user, now=now),
        calendar=calendar_of(user=user, rewards=rewards, now=now),
        steps=FirstSteps(
            had_credits=CreditEntry.objects.filter(account__user_id=user.pk, amount__gt=0).exists(),
            relayed_call=transactions_of(user).exists(),
        ),
    )


def earnings_of(user: User) -> QuerySet[CreditEntry]:
    """Return the user's entries except relay charges."""
    return credits_queries.earnings_of(credits_queries.account_of(user))


def relayer_url(chain_id: int | None = None) -> str:
    """Return the URL with which a wallet adds the service as a relayer (LSP-15) of a chain, by default of home."""
    base = f"{settings.PUBLIC_URL}/api/lsp15"
    return base if chain_id in {None, home().id} else f"{base}/{chain_id}"
