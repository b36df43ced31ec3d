"""
The state of people's credits compared with their use, of sponsors' credits compared with their alarms, and of new
profiles compared with the numbers that policies allow, with an event for each change.

Only one run is active at a time, so each change of state is one event. A person's use is read again after an hour.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from credits.queries import daily_uses
from sponsors.models import Member, Sponsor
from sponsors.queries.figures import profile_numbers
from webhooks import payloads
from webhooks.models import CreditLevel, PolicyLevel, SponsorLevel
from webhooks.payloads import Event, sponsors
from webhooks.queries import ChangedBalance
from webhooks.rules import crossing, next_state, told_part

_USE_KEPT = timedelta(hours=1)


def crossings(changed: Sequence[ChangedBalance], *, now: datetime) -> list[Event]:
    """Store the new states of these balances, and return the events of those that crossed a threshold."""
    known = _levels_of([row.user_id for row in changed], now=now)
    events, moved = [], []
    for row in changed:
        level = known[row.user_id]
        before = level.state
        after = next_state(state=before, balance=row.balance, balance_then=level.balance, use=level.use)
        if after == before:
            continue
        level.state, level.balance = after, row.balance
        moved.append(level)
        if event_type := crossing(before=before, after=after):
            level.crossings += 1
            events.append(
                payloads.of_level(
                    event_type, level, balance=row.balance, account_id=row.account_id, at=row.changed_at
                )
            )
    CreditLevel.objects.bulk_update(moved, ["state", "balance", "crossings"])
    return events


def sponsors_crossings(*, now: datetime) -> tuple[list[Event], list[tuple[int, Event]]]:
    """
    Store which sponsors have crossed their alarms.

    Returns the events for their members, and those for their own endpoints with each sponsor's id.
    """
    alarmed = Sponsor.objects.filter(alarm_credits__isnull=False).select_related("credit_account")
    known = {level.sponsor_id: level for level in SponsorLevel.objects.filter(sponsor__in=alarmed)}
    moved, of_members, of_sponsors = [], [], []
    for sponsor in alarmed.order_by("pk"):
        level = known.get(sponsor.pk) or SponsorLevel(sponsor=sponsor)
        balance = sponsor.credit_account.balance
        if level.is_low == (balance < (sponsor.alarm_credits or 0)):
            continue
        level.is_low, level.crossings = not level.is_low, level.crossings + 1
        moved.append(level)
        event = partial(sponsors.of_level, level, sponsor=sponsor, balance=balance, at=now)
        of_sponsors.append((sponsor.pk, event()))
        members = sponsor.members.filter(email=None).select_related("user").order_by("pk")
        of_members += [event(member=member) for member in members]
    SponsorLevel.objects.bulk_create(
        moved, update_conflicts=True, unique_fields=["sponsor"], update_fields=["is_low", "crossings"]
    )
    return of_members, of_sponsors


def profile_crossings(*, now: datetime) -> tuple[list[Event], list[tuple[int, Event]]]:
    """
    Store which policies have used a further part of a number of new profiles.

    A part is told once for each window and number. Returns the events for the sponsors' owners, and those for their own
    endpoints with each sponsor's id.
    """
    known = {(level.policy_id, level.scope): level for level in PolicyLevel.objects.all()}
    moved, of_owners, of_sponsors = [], [], []
    for row in profile_numbers(now=now):
        policy, percent = row.version.policy, told_part(used=row.used, number=row.number)
        level = known.get((policy.pk, row.scope))
        is_same = level is not None and (level.begins, level.number) == (row.begins, row.number)
        if percent <= (level.percent if level and is_same else 0):
            continue
        moved.append(
            PolicyLevel(policy=policy, scope=row.scope, begins=row.begins, number=row.number, percent=percent)
        )
        of_sponsors.append((policy.sponsor_id, sponsors.of_number(row, percent=percent, at=now)))
        owners = policy.sponsor.members.filter(email=None, role=Member.Role.OWNER).order_by("pk")
        of_owners += [
            sponsors.of_number(row, percent=percent, at=now, owner_id=owner.user_id) for owner in owners
        ]
    PolicyLevel.objects.bulk_create(
        moved,
        update_conflicts=True,
        unique_fields=["policy", "scope"],
        update_fields=["begins", "number", "percent"],
    )
    return of_owners, of_sponsors


def _levels_of(user_ids: Sequence[int], *, now: datetime) -> dict[int, CreditLevel]:
    """Return the level of each user, with a use that was read within the last hour."""
    rows = CreditLevel.objects.select_related("user").filter(user__in=user_ids)
    fresh = {row.user_id: row for row in rows.filter(use_read_at__gt=now - _USE_KEPT)}
    stale = [user_id for user_id in user_ids if user_id not in fresh]
    if not stale:
        return fresh
    uses = daily_uses(stale, now=now)
    CreditLevel.objects.bulk_create(
        [CreditLevel(user_id=user_id, use=uses.get(user_id, 0), use_read_at=now) for user_id in stale],
        update_conflicts=True,
        unique_fields=["user"],
        update_fields=["use", "use_read_at"],
    )
    return {row.user_id: row for row in rows}
