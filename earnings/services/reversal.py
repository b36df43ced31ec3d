"""
What a reversal takes back: the whole credit, or as much of it as the network says.

Credit and reversal may come in either order, and several reversals may share one
credit. Each of them keeps on its row what it took, so a credit is worth its own
credits less theirs. The caller holds the lock of the user's account.
"""

import logging
from decimal import Decimal

from django.db.models import Sum

from credits.models import CreditEntry, EntrySource
from credits.services import entries
from earnings.models import Postback, PostbackKind, PostbackState, Refusal
from earnings.services.inbox import key_of, related
from rewards.benefits import earned_credits
from rewards.models import BadgeTrack, ExperienceEntry
from rewards.services import experience
from users.models import User

logger = logging.getLogger(__name__)
_State = PostbackState


def reverse(reversal: Postback, user: User) -> None:
    """
    Take back what the credit gave; remember the reversal where the credit is still to come.

    Whoever names another user than the credit does takes nothing.
    """
    credit = related(reversal, PostbackKind.CREDIT).first()
    if credit is None:
        return  # RECEIVED, as it was inserted
    if credit.user_id != reversal.user_id:
        _refuse(reversal)
    elif credit.state not in {_State.AVAILABLE, _State.HELD}:
        reversal.state = _State.INFO
    else:
        _take_back(reversal, credit, user)
        Postback.objects.filter(pk=credit.pk).update(state=credit.state)


def meet_earlier(credit: Postback) -> int:
    """
    Let the reversals that came before the credit take from it, and return the credits that it has left.

    A credit of which nothing is left is reversed.
    """
    left = credit.credits
    waiting = related(credit, PostbackKind.REVERSAL).filter(state=_State.RECEIVED).order_by("pk")
    for reversal in waiting:
        if reversal.user_id == credit.user_id:
            left = _take_from(reversal, credit)
        else:
            _refuse(reversal)
        reversal.save(update_fields=["state", "refused_because", "credits"])
    return left


def left_of(credit: Postback) -> int:
    """Return the credits that no reversal has taken yet."""
    return credit.credits - _taken_from(credit)[0]


def _refuse(reversal: Postback) -> None:
    reversal.state, reversal.refused_because = _State.REFUSED, Refusal.ANOTHERS_CREDIT
    logger.error(
        "a reversal of %s names another user than %s, which is another user's: nothing is taken back",
        reversal.network,
        reversal.original_id,
    )


def _take_back(reversal: Postback, credit: Postback, user: User) -> None:
    taken_before = _taken_from(credit)[0]
    _take_from(reversal, credit)
    if credit.entry_id is None or not reversal.credits:
        return
    # A prefix: ids are the networks' own, and one that ends like a suffix of ours would take its key.
    key = f"reversed-{key_of(reversal)}"
    reversal.entry = entries.reverse(
        user=user, credits=reversal.credits, source=EntrySource.EARNING_REVERSAL, key=key
    )
    gained = ExperienceEntry.objects.get(key=key_of(credit)).amount
    given = CreditEntry.objects.get(pk=credit.entry_id).amount
    # What was taken before the credits were given is not among them.
    before = taken_before - (credit.credits - given)
    # In proportion; nothing is left over when the last credit goes.
    lost = [gained * taken // given for taken in (before, before + reversal.credits)]
    if lost[1] > lost[0]:
        experience.take_back(
            user=user,
            track=BadgeTrack.PERMANENT,
            amount=lost[1] - lost[0],
            key=key,
            cause=EntrySource.EARNING_REVERSAL,
        )


def _take_from(reversal: Postback, credit: Postback) -> int:
    """Write on both rows what becomes of them, and return the credits that are left."""
    taken, amount_taken = _taken_from(credit)
    left = credit.credits - taken
    remaining = (
        Decimal(0) if reversal.takes_back is None else credit.amount - amount_taken - reversal.takes_back
    )
    if remaining > 0:
        bonus = credit.badge_bonus + credit.modifier_bonus
        still = min(left, earned_credits(amount=remaining, rate=credit.rate, bonus=bonus))
    else:
        credit.state, still = _State.REVERSED, 0
    reversal.state, reversal.credits = _State.REVERSED, left - still
    return still


def _taken_from(credit: Postback) -> tuple[int, Decimal]:
    """Return what reversals have taken so far: in credits, and in the network's own unit."""
    done = related(credit, PostbackKind.REVERSAL).filter(state=_State.REVERSED)
    sums = done.aggregate(credits=Sum("credits"), amount=Sum("takes_back"))
    return sums["credits"] or 0, sums["amount"] or Decimal(0)
