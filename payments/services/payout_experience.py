"""
Experience for collected money: gained with the payout, taken back as the money goes back.

What is taken back of a track is floor(gained × money gone / money collected) at any time, as it is with
credits, so the order in which money goes back and forth does not matter. How much a payout gains is
decided once, by the badge that is worn when it is posted. So a month that is posted late gains by the badge
of that day: otherwise everything gained since would have to be gained anew, and a log is not rewritten.
Credits and periods do not depend on the order.
"""

from django.db.models import Sum

from credits.models import BadgeTrack, EntrySource, ExperienceEntry
from credits.services import experience
from payments.amounts import clawback_target
from payments.models import Payout

TRACKS = (BadgeTrack.SUBSCRIBER, BadgeTrack.PERMANENT)


def gain(*, payout: Payout) -> None:
    """Add what the payout is worth on both tracks, once; in the caller's transaction."""
    bases = {
        BadgeTrack.SUBSCRIBER: payout.amount_minor * payout.rate.experience_per_minor_unit,
        BadgeTrack.PERMANENT: payout.credits,
    }
    for track, base in bases.items():
        if base > 0:
            experience.gain(
                user=payout.user,
                track=track,
                base=base,
                key=_payout_key(payout, track),
                cause=EntrySource.SUBSCRIBED_PAYOUT,
            )


def steps(*, payout: Payout, gone_minor: int) -> dict[BadgeTrack, int]:
    """Return what is still to be taken back on each track, negative where some is to be given again."""
    clawback_keys = list(payout.clawbacks.values_list("key", flat=True))
    found = {}
    for track in TRACKS:
        gained = _sum("amount", [_payout_key(payout, track)])
        moved = _sum("base", [_clawback_key(key, track) for key in clawback_keys])
        wanted = clawback_target(paid_out=gained, collected_minor=payout.amount_minor, gone_minor=gone_minor)
        found[track] = wanted + moved
    return found


def follow(*, payout: Payout, steps: dict[BadgeTrack, int], clawback_key: str) -> None:
    """Post the steps of a clawback; in the caller's transaction."""
    for track, step in steps.items():
        if step:
            post = experience.take_back if step > 0 else experience.give_again
            post(
                user=payout.user,
                track=track,
                amount=abs(step),
                key=_clawback_key(clawback_key, track),
                cause=EntrySource.PAYOUT_CLAWBACK,
            )


def _payout_key(payout: Payout, track: BadgeTrack) -> str:
    return f"stripe:invoice:{payout.stripe_invoice_id}:{track.lower()}"


def _clawback_key(key: str, track: BadgeTrack) -> str:
    return f"{key}:{track.lower()}"


def _sum(field: str, keys: list[str]) -> int:
    return ExperienceEntry.objects.filter(key__in=keys).aggregate(total=Sum(field))["total"] or 0
