"""Figures for a sponsor's members: how long the credits last, the usage of policies, and spend by day and user."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import Count, Exists, Min, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.utils.crypto import salted_hmac

from credits.models import CreditEntry, EntrySource
from credits.rules import USE_PERIOD, daily_use, days_left
from gateway.common import db
from gateway.common.statements import Statements
from sponsors.models import (
    OF_PROFILES,
    Policy,
    PolicyVersion,
    RefusalCount,
    Sponsor,
    SponsoredCall,
    Usage,
    UsageScope,
)
from sponsors.rules.policies import Budget, period_of

_CHARGES = (EntrySource.RELAY_TRANSACTION, EntrySource.RELAY_REVERSAL)
# How many users are listed, those with the highest spend first.
MOST_USERS = 100
_ID_DIGITS = 16


class _Sql(Statements, file=__file__):
    budget: str


# Some days of use say little about the next ones.
_USE_TO_TELL = timedelta(days=7)


class BurnRate(NamedTuple):
    """
    Recent credits per day, and for how many whole days the available credits last.

    The latter is None without recent use, and until a week after the first charge of the period.
    """

    daily_use: int
    days_left: int | None


def burn_rate_of(sponsor: Sponsor, *, now: datetime) -> BurnRate:
    """Return the sponsor's burn rate, whose use is computed in the same way as a user's."""
    charges = CreditEntry.objects.filter(
        account__sponsor=sponsor, source__in=_CHARGES, created_at__gte=now - USE_PERIOD
    )
    sums = charges.aggregate(sum=Sum("amount"), first=Min("created_at"))
    if sums["first"] is None:
        return BurnRate(0, None)
    since_first = now - sums["first"]
    use = daily_use(charged=-sums["sum"], since_first=since_first)
    lasts = days_left(available=sponsor.credit_account.available, use=use)
    return BurnRate(use, lasts if since_first >= _USE_TO_TELL else None)


def budget_of(sponsor: Sponsor, *, now: datetime) -> list[Budget]:
    """Return the sponsor's budget of the current day and month; nothing for a sponsor without one."""
    rows = db.all_rows(_Sql.budget, {"sponsor": sponsor.pk, "now": now})
    return [Budget(*row) for row in rows]


@dataclass(frozen=True, kw_only=True)
class PolicyFigures:
    """A policy with its newest terms (None without a version), and its total usage in credits and calls."""

    policy: Policy
    terms: PolicyVersion | None
    credits: int = 0
    calls: int = 0
    window_credits: int = 0
    window_ends_at: datetime | None = None


def policies_of(sponsor: Sponsor, *, now: datetime) -> list[PolicyFigures]:
    """Return the sponsor's policies in the order in which they are checked."""
    policies = list(Policy.objects.filter(sponsor=sponsor).order_by("position", "pk"))
    newest = PolicyVersion.objects.filter(policy__in=policies).order_by("policy_id", "-number")
    terms = {version.policy_id: version for version in newest.distinct("policy_id")}
    return [
        _figures(policy, terms.get(policy.pk), usage, now=now)
        for policy, usage in zip(policies, _usage_of(policies, terms, now=now), strict=True)
    ]


class ProfileNumber(NamedTuple):
    """How many new profiles count towards a number of a policy's newest terms: in its current window, or in total."""

    version: PolicyVersion
    scope: UsageScope
    number: int
    used: int
    # 1970-01-01 for the number in total, which never ends.
    begins: datetime
    ends_at: datetime | None


def profile_numbers(*, now: datetime) -> list[ProfileNumber]:
    """Return the numbers of all enabled policies for new profiles that have begun to be used."""
    newer = PolicyVersion.objects.filter(policy=OuterRef("policy"), number__gt=OuterRef("number"))
    newest = PolicyVersion.objects.filter(~Exists(newer), purpose__in=OF_PROFILES, policy__is_enabled=True)
    versions = list(newest.select_related("policy__sponsor").order_by("policy_id"))
    usages = _usage_of(
        [version.policy for version in versions],
        {version.policy_id: version for version in versions},
        now=now,
    )
    return [
        ProfileNumber(version, scope, number, usage[scope].calls, usage[scope].begins, ends_at)
        for version, usage in zip(versions, usages, strict=True)
        for scope, number, ends_at in (
            (UsageScope.WINDOW, version.window_calls, _window_end(version, now=now)),
            (UsageScope.CAMPAIGN, version.campaign_calls, None),
        )
        if number is not None and scope in usage
    ]


def _window_end(version: PolicyVersion | None, *, now: datetime) -> datetime | None:
    if version is None or version.window_seconds is None:
        return None
    return period_of(now, seconds=version.window_seconds).end


def _usage_of(
    policies: Iterable[Policy], terms: dict[int, PolicyVersion], *, now: datetime
) -> Iterable[dict[str, Usage]]:
    """Return each policy's usage by all users, in total and in the current window, by scope."""
    policies = list(policies)
    wanted = Q(scope=UsageScope.CAMPAIGN)
    for version in terms.values():
        if version.window_seconds:
            begins = period_of(now, seconds=version.window_seconds).start
            wanted |= Q(scope=UsageScope.WINDOW, policy_id=version.policy_id, begins=begins)
    rows = Usage.objects.filter(wanted, policy__in=policies, user_number=0)
    found: dict[int, dict[str, Usage]] = {policy.pk: {} for policy in policies}
    for row in rows:
        found[row.policy_id][row.scope] = row
    return found.values()


def _figures(
    policy: Policy, terms: PolicyVersion | None, usage: dict[str, Usage], *, now: datetime
) -> PolicyFigures:
    campaign, window = usage.get(UsageScope.CAMPAIGN), usage.get(UsageScope.WINDOW)
    return PolicyFigures(
        policy=policy,
        terms=terms,
        credits=campaign.credits if campaign else 0,
        calls=campaign.calls if campaign else 0,
        window_credits=window.credits if window else 0,
        window_ends_at=_window_end(terms, now=now),
    )


class Spent(NamedTuple):
    """Credits and calls of one day, policy or user."""

    what: date | str
    credits: int
    calls: int


@dataclass(frozen=True, kw_only=True)
class Spend:
    """Credits that the sponsor has paid or holds for calls accepted since a time."""

    days: list[Spent]
    policies: list[Spent]
    # The users with the highest spend, by pseudonyms that only this sponsor sees.
    users: list[Spent]
    user_count: int


def spend_of(sponsor: Sponsor, *, since: datetime) -> Spend:
    """Return the spend by day (UTC), policy and user."""
    calls = calls_of(sponsor, since=since)
    days = _summed(calls.annotate(day=TruncDate("accepted_at", tzinfo=UTC)), "day").order_by("day")
    policies = _summed(calls, "version__policy__name").order_by("-spent")
    users = _summed(calls, "user_id").order_by("-spent", "user_id")[:MOST_USERS]
    return Spend(
        days=[Spent(*row) for row in days],
        policies=[Spent(*row) for row in policies],
        users=[Spent(user_reference(sponsor, user_id), spent, number) for user_id, spent, number in users],
        user_count=calls.aggregate(users=Count("user_id", distinct=True))["users"],
    )


def refusals_of(sponsor: Sponsor, *, since: datetime) -> list[tuple[str, int]]:
    """Return how many requests each rule refused since the UTC day of `since`, the most frequent first."""
    counts = RefusalCount.objects.filter(sponsor=sponsor, day__gte=since.date()).order_by()
    sums = counts.values("rule").annotate(number=Sum("requests")).order_by("-number", "rule")
    return list(sums.values_list("rule", "number"))


def calls_of(sponsor: Sponsor, *, since: datetime, until: datetime | None = None) -> QuerySet[SponsoredCall]:
    """Return the calls that the sponsor pays for, accepted in this period, unordered."""
    versions = PolicyVersion.objects.filter(policy__sponsor=sponsor).values_list("pk", flat=True)
    calls = SponsoredCall.objects.filter(version__in=list(versions), accepted_at__gte=since).order_by()
    return calls if until is None else calls.filter(accepted_at__lt=until)


def _summed(calls: QuerySet[Any], name: str) -> QuerySet[Any, Any]:
    """Group the calls by a field; return its values, each with the credits `spent` and the number of calls."""
    sums = calls.values(name).annotate(spent=Sum("counted_credits"), number=Sum("counted_calls"))
    rows: QuerySet[Any, Any] = sums.values_list(name, "spent", "number")
    return rows


def user_reference(sponsor: Sponsor, user_id: int) -> str:
    """Return a pseudonym of a user for this sponsor: it reveals no profile and differs from sponsor to sponsor."""
    digest = salted_hmac("sponsors.user", f"{sponsor.pk}:{user_id}", algorithm="sha256")
    return digest.hexdigest()[:_ID_DIGITS]


def since_of(days: int, *, now: datetime) -> datetime:
    """Return the start of a period of `days` UTC days that ends with today."""
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight - timedelta(days=days - 1)
