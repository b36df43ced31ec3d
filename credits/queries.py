"""What the ledger answers: balances, entries, the running allowance, the standing. Nothing here changes a row."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.contrib.auth import get_user_model
from django.db.models import Exists, Q, QuerySet, Sum

from credits.benefits import Benefits, PaidPeriod, benefits_of
from credits.models import (
    AdNetwork,
    Allowance,
    Badge,
    BadgeTrack,
    CreditAccount,
    CreditEntry,
    EntrySource,
    LedgerAudit,
    Modifier,
)
from credits.models.entries import DISPROOFS, PROOFS
from gateway.common import sql
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


def earnings_of(account: CreditAccount) -> QuerySet[CreditEntry]:
    """Return every entry of the account that is no relay charge: what was earned, given back or taken back."""
    return CreditEntry.objects.filter(account_id=account.pk).exclude(source=EntrySource.RELAY_TRANSACTION)


def current_allowance(*, user: ProfileOwner, now: datetime) -> AllowanceView | None:
    """Return the allowance that runs at `now`, or None for a user who is not subscribed."""
    return _running(next(iter(Allowance.objects.filter(user_id=user.pk)), None), now=now)


def _running(allowance: Allowance | None, *, now: datetime) -> AllowanceView | None:
    if allowance is None:
        return None
    period = paid_period(allowance)
    if not period.runs_at(now):
        return None
    return AllowanceView(credits=period.credits, ends_at=period.reset_after(now))


def paid_period(row: Allowance) -> PaidPeriod:
    """Return the row as `credits.benefits` takes it."""
    return PaidPeriod(
        credits=row.credits,
        starts_at=row.starts_at,
        ends_at=row.ends_at,
        resets_at=row.resets_at,
        renews=row.renews,
    )


@dataclass(frozen=True, kw_only=True)
class Standing:
    """
    A user's standing: credits, experience, badges and what they are worth together.

    `subscriber_badge` is the lowest of its ladder for a user without an allowance,
    and then `benefits` leave it out.
    """

    account: CreditAccount
    allowance: AllowanceView | None
    permanent_badge: Badge
    subscriber_badge: Badge
    modifiers: list[Modifier]
    benefits: Benefits

    @property
    def is_subscriber(self) -> bool:
        return self.allowance is not None


def standing_of(*, user: ProfileOwner, now: datetime) -> Standing:
    """Return the user's standing at `now`, in four statements; modifiers go by the database's clock."""
    account = account_of(user) or CreditAccount(user_id=user.pk)
    allowance = current_allowance(user=user, now=now)
    permanent, subscriber = badges_at(
        permanent_experience=account.permanent_experience,
        subscriber_experience=account.subscriber_experience if allowance else 0,
    )
    modifiers = list(Modifier.objects.active().filter(user_id=user.pk).order_by("id"))
    return Standing(
        account=account,
        allowance=allowance,
        permanent_badge=permanent,
        subscriber_badge=subscriber,
        modifiers=modifiers,
        benefits=benefits_of(
            badges=[permanent, subscriber] if allowance else [permanent], modifiers=modifiers
        ),
    )


def debt_limit_of(*, user: ProfileOwner, now: datetime) -> int:
    """Return how many credits the user may owe at `now`, in one statement."""
    (limit, more, *allowance) = sql.only_row(_DEBT_LIMITS, {"user": user.pk})
    if more <= limit or allowance[0] is None:
        return int(limit)
    names = ("credits", "starts_at", "ends_at", "resets_at", "renews")
    period = PaidPeriod(**dict(zip(names, allowance, strict=True)))
    return int(more if period.runs_at(now) else limit)


# What the badges worn on both ladders accept, and the allowance, without which the subscriber's does not count.
_DEBT_LIMITS = """
SELECT coalesce(permanent.acceptable_credit_debt, 0), coalesce(subscriber.acceptable_credit_debt, 0),
       allowance.credits, allowance.starts_at, allowance.ends_at, allowance.resets_at, allowance.renews
FROM (SELECT coalesce(max(permanent_experience), 0) AS permanent,
             coalesce(max(subscriber_experience), 0) AS subscriber
      FROM credits_account WHERE user_id = %(user)s) AS experience
LEFT JOIN credits_badge AS permanent
    ON permanent.track = 'PERMANENT' AND permanent.exp_lower_bound <= experience.permanent
   AND (permanent.exp_upper_bound IS NULL OR permanent.exp_upper_bound > experience.permanent)
LEFT JOIN credits_badge AS subscriber
    ON subscriber.track = 'SUBSCRIBER' AND subscriber.exp_lower_bound <= experience.subscriber
   AND (subscriber.exp_upper_bound IS NULL OR subscriber.exp_upper_bound > experience.subscriber)
LEFT JOIN credits_allowance AS allowance ON allowance.user_id = %(user)s
"""


def badges_at(*, permanent_experience: int, subscriber_experience: int) -> tuple[Badge, Badge]:
    """Return the badges of both ladders at that experience; without a ladder, a badge that grants nothing."""
    worn = Badge.objects.filter(
        _range_of(BadgeTrack.PERMANENT, permanent_experience)
        | _range_of(BadgeTrack.SUBSCRIBER, subscriber_experience)
    )
    by_track = {badge.track: badge for badge in worn}
    return _worn_or_none(by_track, BadgeTrack.PERMANENT), _worn_or_none(by_track, BadgeTrack.SUBSCRIBER)


def _worn_or_none(by_track: dict[str, Badge], track: BadgeTrack) -> Badge:
    return by_track.get(track) or Badge(track=track, exp_lower_bound=0)


def _range_of(track: BadgeTrack, experience: int) -> Q:
    above = Q(exp_upper_bound=None) | Q(exp_upper_bound__gt=experience)
    return Q(above, track=track, exp_lower_bound__lte=experience)


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


def has_earned(user: ProfileOwner) -> bool:
    """Return whether the user was given credits for payments or earnings that were not all taken back since."""
    entries = CreditEntry.objects.filter(account__user_id=user.pk)
    # Few people had anything taken back; for the others one entry is read, and nothing is added up.
    disproofs = entries.filter(source__in=DISPROOFS)
    sums = entries.filter(source__in=[*PROOFS, *DISPROOFS]).values("account").annotate(kept=Sum("amount"))
    return entries.filter(~Exists(disproofs) | Exists(sums.filter(kept__gt=0)), source__in=PROOFS).exists()


class Figures(NamedTuple):
    """The state of the books at one moment: whole credits, ages in seconds, 0 where nothing waits."""

    accounts: int
    # Sums of the balances above 0, of those below, and of what is held.
    owned: int
    owed: int
    held: int
    open_holds: int
    open_hold_credits: int
    oldest_hold_age: float
    held_earnings: int
    held_earning_credits: int
    # Since the oldest held earning should have been given; those of a network that is off wait for it.
    overdue_age: float
    # Of the last 24 hours.
    refused_postbacks: int
    conflicting_postbacks: int


def figures() -> Figures:
    """Return the state of the books, in one statement; it reads accounts, and of the rest what is open or new."""
    return Figures(*sql.only_row(_FIGURES, {}))


_FIGURES = """
SELECT account.*, hold.*, earning.*, postback.*
FROM (SELECT count(*), coalesce(sum(balance) FILTER (WHERE balance > 0), 0)::bigint,
             coalesce(-sum(balance) FILTER (WHERE balance < 0), 0)::bigint, coalesce(sum(held), 0)::bigint
      FROM credits_account) AS account,
     (SELECT count(*), coalesce(sum(amount), 0)::bigint,
             coalesce(greatest(0, extract(epoch FROM statement_timestamp() - min(created_at))), 0)::float
      FROM credits_hold WHERE status = 'HELD') AS hold,
     (SELECT count(*), coalesce(sum(held.credits), 0)::bigint,
             coalesce(greatest(0, extract(epoch FROM statement_timestamp() -
                 min(held.available_at) FILTER (WHERE network.is_enabled))), 0)::float
      FROM credits_postback AS held JOIN credits_adnetwork AS network ON network.id = held.network_id
      WHERE held.state = 'HELD') AS earning,
     (SELECT count(*) FILTER (WHERE state = 'REFUSED'), count(*) FILTER (WHERE is_conflicting)
      FROM credits_postback WHERE received_at >= statement_timestamp() - interval '24 hours') AS postback
"""


def networks() -> dict[str, bool]:
    """Return whether each ad network is enabled, by slug."""
    return dict(AdNetwork.objects.order_by("slug").values_list("slug", "is_enabled"))


def last_audits() -> list[LedgerAudit]:
    """Return the newest finished audit of each kind, without its findings."""
    finished = LedgerAudit.objects.filter(finished_at__isnull=False).defer("findings")
    return list(finished.order_by("kind", "-started_at").distinct("kind"))
