"""What follows from spending credits: experience, and a part of the cost that comes back."""

from datetime import datetime

from credits import queries
from credits.benefits import credits_back
from credits.models import BadgeTrack, CreditEntry, EntrySource
from credits.services import experience
from credits.services.holding import capture, charge
from credits.services.posting import grant
from gateway.common.owner import ProfileOwner


def settle(*, user: ProfileOwner, hold_id: int, credits: int, now: datetime) -> CreditEntry:
    """
    Charge the held credits, reward the user for it, and return the charge.

    The permanent track gains the cost; badges and active modifiers decide how much of
    it comes back, as an entry of its own. Runs inside the caller's transaction; a
    repeat returns the first charge and rewards nothing, whatever the badge is worth by then.

    Raises:
        HoldReleased: the hold was released before, so the charge cannot be made.
        ValueError: `credits` is not positive.
    """
    entry = charge(hold_id=hold_id, credits=credits)
    if entry is None:
        return _charged_before(hold_id=hold_id, credits=credits)
    cost = -entry.amount
    experience.gain(
        user=user, track=BadgeTrack.PERMANENT, base=cost, key=f"spent:{entry.key}", cause=entry.source
    )
    fraction = queries.standing_of(user=user, now=now).benefits.credits_back
    returned = credits_back(cost=cost, fraction=fraction)
    if returned:
        grant(user=user, credits=returned, source=EntrySource.CREDITS_BACK, key=f"back:{entry.key}")
    return entry


def _charged_before(*, hold_id: int, credits: int) -> CreditEntry:
    entry = capture(hold_id=hold_id, credits=credits)
    if entry is None:
        raise ValueError("nothing was charged")
    return entry
