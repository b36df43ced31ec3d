"""
What an event does to its user's account, decided under the account's lock.

The lock makes the order of a credit, its reversal and their repeats one order: each
sees everything that was committed before it. Older rows of the inbox are changed
under that lock alone, so the order of locks is: own new row, account, older rows.
"""

import logging
from datetime import datetime, time, timedelta

from django.db import transaction
from django.db.models import Sum

from credits.services import entries
from earnings.models import Postback, PostbackKind, PostbackState, Refusal
from earnings.networks.registry import ADAPTERS
from earnings.services import inbox, reversal
from earnings.services.inbox import Arrival
from gateway.common.fields import SAFE_INTEGER_MAX
from rewards import queries
from rewards.benefits import RAISED_BY, earned_credits
from rewards.models import BadgeTrack
from rewards.services import experience
from users.models import User

logger = logging.getLogger(__name__)
_State, _Kind = PostbackState, PostbackKind
# What is written once an event has been decided; the rest of its row never changes.
DECIDED = ("state", "refused_because", "badge_bonus", "modifier_bonus", "credits", "entry", "available_at")


@transaction.atomic(durable=True)
def record(arrival: Arrival) -> Postback | None:
    """
    Store an event with everything that follows from it; None for a repeat, which changes nothing.

    A credit that is held, refused by a cap, or reversed beforehand posts no entry.
    """
    postback = inbox.insert(arrival)
    if postback is None:
        inbox.compare_with_first(arrival)
        return None
    if arrival.user is None or postback.kind in {_Kind.INFO, _Kind.TEST}:
        postback.state = _State.INFO
    else:
        entries.lock_account(user=arrival.user)
        _FOLLOWS[_Kind(postback.kind)](postback, arrival.user)
    postback.save(update_fields=DECIDED)
    return postback


def _announce(postback: Postback, user: User) -> None:
    decided = inbox.related(postback, _Kind.CREDIT, _Kind.REVERSAL).exists()
    postback.state = _State.INFO if decided else _State.PENDING


def _credit(postback: Postback, user: User) -> None:
    """Work out the credits from factors that stay on the row, and give, hold or refuse them."""
    source = ADAPTERS[postback.network.slug].kind
    benefits = queries.standing_of(user=user, now=postback.received_at).benefits
    postback.badge_bonus = benefits.badge_bonuses[RAISED_BY[source]]
    postback.modifier_bonus = benefits.modifier_bonuses[RAISED_BY[source]]
    bonus = postback.badge_bonus + postback.modifier_bonus
    worth = earned_credits(amount=postback.amount, rate=postback.rate, bonus=bonus)
    # No network pays so much for one event.
    postback.credits = min(worth, SAFE_INTEGER_MAX)
    _decide_announcements(postback, _State.INFO)
    left = reversal.meet_earlier(postback)
    if postback.state == _State.REVERSED:
        return
    if _exceeds_a_cap(postback):
        postback.state, postback.refused_because = _State.REFUSED, Refusal.ABOVE_A_CAP
        logger.warning("postback %s of %s is above a cap", postback.pk, postback.network)
    elif postback.network.hold_hours:
        postback.state = _State.HELD
        postback.available_at = postback.received_at + timedelta(hours=postback.network.hold_hours)
    else:
        give(postback, user, credits=left)


def give(postback: Postback, user: User, *, credits: int) -> None:
    """Post credits of the row and the experience that they are worth. The caller holds the lock and saves."""
    postback.state, key = _State.AVAILABLE, inbox.key_of(postback)
    if credits:
        source = ADAPTERS[postback.network.slug].kind
        postback.entry = entries.grant(user=user, credits=credits, source=source, key=key)
        experience.gain(user=user, track=BadgeTrack.PERMANENT, base=credits, key=key, cause=source)


def _reverse(postback: Postback, user: User) -> None:
    _decide_announcements(postback, _State.REVERSED)
    reversal.reverse(postback, user)


_FOLLOWS = {_Kind.PENDING: _announce, _Kind.CREDIT: _credit, _Kind.REVERSAL: _reverse}


def _decide_announcements(postback: Postback, outcome: PostbackState) -> None:
    announced = inbox.related(postback, _Kind.PENDING).filter(state=_State.PENDING)
    announced.filter(user=postback.user_id).update(state=outcome)


def _exceeds_a_cap(postback: Postback) -> bool:
    network = postback.network
    if postback.credits > min(network.per_event_cap or SAFE_INTEGER_MAX, SAFE_INTEGER_MAX - 1):
        return True
    if network.daily_cap is None:
        return False
    return _earned_that_day(postback) + postback.credits > network.daily_cap


def _earned_that_day(postback: Postback) -> int:
    midnight = datetime.combine(postback.received_at.date(), time(), tzinfo=postback.received_at.tzinfo)
    counted = Postback.objects.filter(
        user=postback.user_id,
        network=postback.network,
        kind=_Kind.CREDIT,
        state__in=[_State.AVAILABLE, _State.HELD],
        received_at__gte=midnight,
    )
    return counted.aggregate(total=Sum("credits"))["total"] or 0
