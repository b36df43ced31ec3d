"""
Check in: draw once per attempt and let the drop take effect.

No row is locked. The unique (user, day, attempt) decides which of simultaneous
check-ins has an attempt; whoever loses looks again, and finds the next attempt, the
same key, or nothing left. Lock order: the check-in's row, then the credit account.
"""

from datetime import datetime

from django.db import IntegrityError, transaction

from checkin import queries
from checkin.draw import Draw, Ticket, draw
from checkin.errors import CheckInsNotReady, CheckInsPaused, CheckInUnavailable
from checkin.models import CheckIn, DropTable
from checkin.services import effects, seeds
from credits.queries import Standing, has_earned, standing_of
from gateway.common.owner import ProfileOwner
from gateway.common.sql import violated_constraint

# What a simultaneous check-in of the same user may have taken before this one.
_TAKEN = {"checkin_checkin_attempt", "checkin_checkin_key"}


def execute(*, user: ProfileOwner, now: datetime, idempotency_key: str = "") -> CheckIn:
    """
    Check the user in, and return the check-in with its draw.

    A repeat with the same key returns the first check-in, whenever it was. Check-in,
    draw and effect commit together or not at all.

    Raises:
        CheckInUnavailable: the attempts of the UTC day are used up.
        CheckInsPaused: staff have paused check-ins.
        CheckInsNotReady: there is nothing to draw from.
    """
    while True:
        try:
            with transaction.atomic(durable=True):
                return _repeat(user, idempotency_key) or _check_in(user, now, idempotency_key)
        except IntegrityError as error:
            if violated_constraint(error) not in _TAKEN:
                raise


def _repeat(user: ProfileOwner, key: str) -> CheckIn | None:
    return CheckIn.objects.filter(user_id=user.pk, idempotency_key=key).first() if key else None


def _check_in(user: ProfileOwner, now: datetime, key: str) -> CheckIn:
    if queries.is_paused():
        raise CheckInsPaused
    # Counted before anything else is read: whoever commits after this count takes the same attempt as we
    # do and makes us look again, so the badges below are never older than the attempt.
    day = queries.day_of(now)
    attempt = queries.attempts_used(user=user, day=day) + 1
    standing = standing_of(user=user, now=now)
    if attempt > queries.attempts_of(standing):
        raise CheckInUnavailable(next_at=queries.next_midnight(now))
    check_in = CheckIn(user_id=user.pk, day=day, attempt=attempt, idempotency_key=key)
    drawn = _draw_into(check_in, user=user, standing=standing)
    check_in.save(force_insert=True)
    effects.apply(user=user, check_in=check_in, drop=drawn.result)
    return check_in


def _draw_into(check_in: CheckIn, *, user: ProfileOwner, standing: Standing) -> Draw:
    """Draw for the attempt and write down all that is needed to draw again."""
    tables, is_proven = queries.tables_of(standing), has_earned(user)
    items = queries.items_for(standing=standing, tables=tables, is_proven=is_proven)
    if tables.permanent is None or not items:
        raise CheckInsNotReady("No drop table is published from which you can draw. Repeat later.")
    check_in.permanent_table = tables.permanent
    check_in.subscriber_table = tables.subscriber if standing.is_subscriber else None
    check_in.experience_only = not is_proven
    check_in.seed = seeds.seed_of(check_in.day)
    drawn = draw(
        seed=seeds.open_seed(check_in.seed),
        ticket=ticket_of(check_in, profile_address=str(user.profile_address)),
        items=items,
    )
    check_in.possible_results = [effects.as_json(drop) for drop in drawn.possible]
    check_in.result_place = drawn.chosen
    return drawn


def tables_drawn(check_in: CheckIn) -> list[DropTable]:
    """Return the tables of a check-in in the order of their items."""
    subscriber = check_in.subscriber_table
    return [check_in.permanent_table, *([subscriber] if subscriber else [])]


def ticket_of(check_in: CheckIn, *, profile_address: str) -> Ticket:
    """Return what names the draw of a check-in."""
    return Ticket(
        profile_address=profile_address,
        day=check_in.day.isoformat(),
        attempt=check_in.attempt,
        tables=tuple((table.pk, table.version) for table in tables_drawn(check_in)),
    )
