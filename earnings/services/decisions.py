"""
The decision about each postback: credited, held, taken back, announced or refused.

Decisions are made in memory on a `Book` whose rows are locked, so a credit, its reversal and their repeats each see all
earlier decisions.
"""

import logging
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

from earnings.models import CAPS, HoldReason, Postback, PostbackKind, PostbackState, Refusal
from earnings.rules import REVERSED_HOLD
from earnings.services import caps
from earnings.services.books import Book, entry_key
from earnings.states import Event, allows, apply
from gateway.common.fields import SAFE_INTEGER_MAX
from rewards.rules import MODIFIER_TYPE_BY_SOURCE, earned_credits

logger = logging.getLogger(__name__)


def decide(postback: Postback, book: Book) -> None:
    """Decide the next postback of the batch, with all its effects."""
    _DECISIONS[PostbackKind(postback.kind)](postback, book)
    book.add(postback)


def _ignore(postback: Postback, book: Book) -> None:
    apply(postback, Event.IGNORE)


def _announcement(postback: Postback, book: Book) -> None:
    is_decided = book.related_to(postback, PostbackKind.CREDIT, PostbackKind.REVERSAL)
    apply(postback, Event.IGNORE if is_decided else Event.ANNOUNCE)


def _credit(credit: Postback, book: Book) -> None:
    user_id = credit.user_id or 0
    benefits = book.standings[user_id].benefits
    raised = MODIFIER_TYPE_BY_SOURCE[book.source]
    credit.badge_bonus = benefits.badge_bonuses[raised]
    credit.modifier_bonus = benefits.modifier_bonuses[raised]
    # The maximum for one event of any network.
    credit.credits = min(_worth(credit, credit.amount), SAFE_INTEGER_MAX)
    _close_announcements(credit, Event.CONFIRM, book)
    remaining = _apply_earlier_reversals(credit, book)
    history = book.histories[user_id]
    if credit.state != PostbackState.REVERSED:
        _give(credit, remaining, book)
        if caps.counts_today(credit, day=book.received_at.date()):
            history.today += credit.credits
    history.earnings += 1


def _give(credit: Postback, remaining: int, book: Book) -> None:
    if book.day is None:
        raise RuntimeError("the day's ceilings are not locked")
    credit.hold_reason = caps.hold_reason(credit, book.histories[credit.user_id or 0], book.day)
    hold = timedelta(hours=credit.network.hold_hours)
    if credit.hold_reason == HoldReason.REVERSALS:
        hold = max(hold, REVERSED_HOLD)
    if hold or credit.hold_reason:
        apply(credit, Event.HOLD)
        credit.available_at = None if credit.hold_reason in CAPS else credit.received_at + hold
        return
    apply(credit, Event.POST)
    if remaining:
        book.grant(credit, remaining)


def _reversal(reversal: Postback, book: Book) -> None:
    _close_announcements(reversal, Event.REVERSE, book)
    credit = next(iter(book.related_to(reversal, PostbackKind.CREDIT)), None)
    # The reversal waits for its credit, or for the user of a credit that names none.
    if credit is None or credit.user_id is None:
        return
    if credit.user_id != reversal.user_id:
        _refuse_reversal(reversal)
    elif allows(credit, Event.REVERSE):
        _take_back(reversal, credit, book)
        book.change(credit)
    else:
        apply(reversal, Event.IGNORE)


_DECISIONS: dict[PostbackKind, Callable[[Postback, Book], None]] = {
    PostbackKind.PENDING: _announcement,
    PostbackKind.CREDIT: _credit,
    PostbackKind.REVERSAL: _reversal,
    PostbackKind.INFO: _ignore,
    PostbackKind.TEST: _ignore,
}


def _close_announcements(postback: Postback, event: Event, book: Book) -> None:
    for row in book.related_to(postback, PostbackKind.PENDING):
        if row.user_id == postback.user_id and row.state == PostbackState.PENDING:
            apply(row, event)
            book.change(row)


def _worth(credit: Postback, amount: Decimal) -> int:
    return earned_credits(amount=amount, rate=credit.rate, bonus=credit.badge_bonus + credit.modifier_bonus)


# --- Reversals. Several may share one credit; each stores what it took, so a credit's remainder is its own credits
# minus theirs.


def _apply_earlier_reversals(credit: Postback, book: Book) -> int:
    remaining = credit.credits
    for reversal in book.related_to(credit, PostbackKind.REVERSAL):
        if reversal.state != PostbackState.RECEIVED:
            continue
        if reversal.user_id == credit.user_id:
            remaining = _reduce(credit, reversal, book)
        else:
            _refuse_reversal(reversal)
        book.change(reversal)
    return remaining


def _refuse_reversal(reversal: Postback) -> None:
    apply(reversal, Event.REFUSE)
    reversal.refused_because = Refusal.ANOTHERS_CREDIT
    logger.error(
        "a reversal of %s names another user than %s: nothing is taken back",
        reversal.network,
        reversal.original_id,
    )


def _take_back(reversal: Postback, credit: Postback, book: Book) -> None:
    history, day = book.histories[credit.user_id or 0], book.received_at.date()
    counted = caps.counts_today(credit, day=day)
    taken_before = book.taken_from(credit)[0]
    _reduce(credit, reversal, book)
    if counted and not caps.counts_today(credit, day=day):
        history.today -= credit.credits
    posted = book.posted.get(entry_key(credit))
    if posted is None or not reversal.credits:
        return
    # Excludes credits that were taken before the credit was posted.
    before = taken_before - (credit.credits - posted.credits)
    # Proportional; the last reversal takes the whole remainder.
    after = before + reversal.credits
    lost = posted.experience * after // posted.credits - posted.experience * before // posted.credits
    book.reverse(reversal, experience=lost)


def _reduce(credit: Postback, reversal: Postback, book: Book) -> int:
    taken, amount_taken = book.taken_from(credit)
    is_first = not book.counts_as_reversed(credit)
    before, remaining, amount_left = credit.credits - taken, 0, Decimal(0)
    if reversal.takes_back is not None:
        amount_left = credit.amount - amount_taken - reversal.takes_back
    if amount_left > 0:
        remaining = min(before, _worth(credit, amount_left))
    # An earlier reversal may have taken everything.
    elif credit.state != PostbackState.REVERSED:
        apply(credit, Event.REVERSE)
    apply(reversal, Event.REVERSE)
    reversal.credits = before - remaining
    # Several reversals of one credit count once.
    if is_first and reversal.credits and book.is_counted(reversal):
        book.histories[credit.user_id or 0].reversals += 1
    return remaining
