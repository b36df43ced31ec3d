"""
Check in: draw once per attempt, and apply the drop in the same transaction.

No row is locked first. The unique constraint (user, day, attempt) lets only one of several
concurrent check-ins use an attempt; the others retry, and find the next attempt, their own
key, or no attempt left. Lock order: the check-in's row, then the credit account.
"""

from datetime import datetime

from django.db import IntegrityError, transaction

from checkin import queries
from checkin.draw import Draw, DrawIdentity, Drop, draw, unlocked
from checkin.errors import CheckInCreditsSpent, CheckInsNotReady, CheckInsPaused, CheckInUnavailable
from checkin.models import CheckIn, DropTable, DropType
from checkin.services import seeds
from credits.models import EntrySource
from credits.queries import has_earned
from credits.services import entries, unbacked
from gateway.common.db import violated_constraint
from gateway.staff import pauses
from rewards.models import BadgeTrack, ModifierType
from rewards.queries import CurrentRewards, current_rewards
from rewards.services import experience, modifiers
from users.models import User

# Constraints that this check-in violates if a concurrent one of the same user was first.
_TAKEN = {"checkin_checkin_attempt", "checkin_checkin_key"}


def execute(*, user: User, now: datetime, idempotency_key: str = "") -> CheckIn:
    """
    Check the user in, and return the check-in with its draw.

    A repeat with the same key returns the first check-in. Check-in, draw and effect commit
    together or not at all.

    Raises:
        CheckInUnavailable: the attempts of the UTC day are used.
        CheckInsPaused: staff have paused check-ins.
        CheckInCreditsSpent: the drop is credits, and check-ins have given all their credits of today.
        CheckInsNotReady: no draw is possible.
    """
    while True:
        try:
            with transaction.atomic(durable=True):
                return _repeat(user, idempotency_key) or _check_in(user, now, idempotency_key)
        except IntegrityError as error:
            if violated_constraint(error) not in _TAKEN:
                raise


def _repeat(user: User, key: str) -> CheckIn | None:
    return CheckIn.objects.filter(user_id=user.pk, idempotency_key=key).first() if key else None


def _check_in(user: User, now: datetime, key: str) -> CheckIn:
    if pauses.is_paused(queries.CHECK_INS):
        raise CheckInsPaused
    # Counted before the badges are read: a check-in that commits after this count uses the same attempt and makes this
    # one retry, so the badges are never older than the count.
    day = queries.day_of(now)
    attempt = queries.attempts_used(user=user, day=day) + 1
    rewards = current_rewards(user=user, now=now)
    if attempt > queries.attempts_of(rewards):
        raise CheckInUnavailable(next_at=queries.next_midnight(now))
    check_in = CheckIn(user_id=user.pk, day=day, attempt=attempt, idempotency_key=key)
    drawn = _draw_into(check_in, user=user, rewards=rewards)
    check_in.save(force_insert=True)
    _apply(user=user, check_in=check_in, drop=drawn.result)
    return check_in


def _draw_into(check_in: CheckIn, *, user: User, rewards: CurrentRewards) -> Draw:
    tables, is_proven = queries.tables_of(rewards), has_earned(user)
    of_user = queries.items_for(rewards=rewards, tables=tables, is_proven=is_proven)
    check_in.streak = queries.streak_of(of_user, user=user, day=check_in.day)
    items = unlocked(of_user, streak=check_in.streak)
    if tables.permanent is None or not items:
        raise CheckInsNotReady("No drop table is published for you. Retry later.")
    check_in.permanent_table = tables.permanent
    check_in.subscriber_table = tables.subscriber if rewards.is_subscriber else None
    check_in.experience_only = not is_proven
    check_in.seed = seeds.seed_of(check_in.day)
    drawn = draw(
        seed=seeds.secret_seed_of(check_in.seed),
        identity=identity_of(check_in, profile_address=str(user.profile_address)),
        items=items,
    )
    check_in.possible_results = [as_json(drop) for drop in drawn.possible]
    check_in.result_place = drawn.chosen
    return drawn


def _apply(*, user: User, check_in: CheckIn, drop: Drop) -> None:
    """
    Award the drop, once per check-in.

    Experience goes to the permanent track, at the badge's growth rate. Runs inside the
    caller's transaction.
    """
    key = check_in.effect_key
    match drop.drop_type:
        case DropType.EXPERIENCE:
            experience.gain(
                user=user,
                track=BadgeTrack.PERMANENT,
                base=int(drop.value),
                key=key,
                cause=EntrySource.CHECK_IN,
            )
        case DropType.CREDITS:
            entries.grant(user=user, credits=int(drop.value), source=EntrySource.CHECK_IN, key=key)
            # After the account, because the day's row is the last lock.
            if not unbacked.take_for_check_in(credits=int(drop.value)):
                raise CheckInCreditsSpent
        case bonus:
            modifiers.grant(
                user=user,
                modifier_type=ModifierType(bonus),
                value=drop.value,
                minutes=drop.minutes or 0,
                key=key,
                reason="check-in",
            )


def as_json(drop: Drop) -> dict[str, object]:
    return {"type": drop.drop_type, "value": f"{drop.value.normalize():f}", "minutes": drop.minutes}


def tables_drawn(check_in: CheckIn) -> list[DropTable]:
    """Return the tables of a check-in in the order of their items."""
    subscriber = check_in.subscriber_table
    return [check_in.permanent_table, *([subscriber] if subscriber else [])]


def identity_of(check_in: CheckIn, *, profile_address: str) -> DrawIdentity:
    return DrawIdentity(
        profile_address=profile_address,
        day=check_in.day.isoformat(),
        attempt=check_in.attempt,
        tables=tuple((table.pk, table.version) for table in tables_drawn(check_in)),
    )
