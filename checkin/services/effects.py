"""What a drop does, in the transaction of its check-in and under its key."""

from checkin.draw import Drop
from checkin.models import CheckIn, DropType
from credits.models import BadgeTrack, EntrySource, ModifierType
from credits.services import experience, ledger, modifiers
from gateway.common.owner import ProfileOwner


def apply(*, user: ProfileOwner, check_in: CheckIn, drop: Drop) -> None:
    """
    Give the user what dropped, once per check-in.

    Experience goes to the permanent track, at the growth rate of the badge. Runs inside
    the caller's transaction.
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
            ledger.grant(user=user, credits=int(drop.value), source=EntrySource.CHECK_IN, key=key)
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
    """Return a drop as a check-in stores it."""
    return {"type": drop.drop_type, "value": f"{drop.value.normalize():f}", "minutes": drop.minutes}
