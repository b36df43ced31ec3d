"""
The timeline of a user: relay calls, check-ins and every other change of the balance, newest first, in one statement.

Each of the three lists is read through its own index, in the order of its key, and the lists are merged by time. A
position has a key in each list, so no row is repeated or lost while new ones arrive.
"""

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple, Self

from credits.models import OF_OTHER_LISTS
from gateway.common import db
from gateway.common.statements import Statements, literals
from relay.models import Attempt
from users.models import User

_LARGEST = 2**62


class Position(NamedTuple):
    """Where the next page starts: below this id of a call, version of an entry, and day and check-in."""

    call: int = _LARGEST
    entry: int = _LARGEST
    day: str = "9999-12-31"
    attempt: int = 0

    @property
    def text(self) -> str:
        """Encode the position as an opaque text."""
        return base64.urlsafe_b64encode(json.dumps(self).encode()).decode()

    @classmethod
    def of(cls, text: str) -> Self | None:
        """Decode the position from an opaque text; None if the text is invalid."""
        try:
            call, entry, day, attempt = json.loads(base64.urlsafe_b64decode(text.encode()))
            date.fromisoformat(day)
        except (binascii.Error, UnicodeError, ValueError, TypeError):
            return None
        numbers = (call, entry, attempt)
        if any(type(number) is not int or not 0 <= number <= _LARGEST for number in numbers):
            return None
        return cls(call, entry, day, attempt) if attempt < 2**15 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """A row of the timeline. `key` is its key in its list; members of the other lists are None or empty."""

    kind: str
    key: int
    at: datetime
    # The change of the balance; for a call in progress, its expected cost as a negative number.
    credits: int
    balance_after: int | None
    source: str
    cause: str
    amount_minor: int | None
    currency: str
    status: str
    failure_code: str
    transaction_hash: str
    cashback: int
    sponsor: str
    payload: bytes
    day: date | None
    attempt: int | None
    # The drop of a check-in as stored, in JSON.
    drop: str | None


class Page(NamedTuple):
    """Rows of the timeline, and the position after them; None at the end."""

    rows: list[Happening]
    next: Position | None


KINDS = ("call", "entry", "check-in")


def timeline_of(
    *, user: User, before: Position, limit: int, kinds: Sequence[str] = KINDS, hash_part: str = ""
) -> Page:
    """
    Return the newest `limit` rows of these kinds that are older than a position.

    With the beginning of a transaction hash, or a shortened one, these are the calls of which an attempt has it.
    """
    attempts = Attempt.objects.with_hash_like(hash_part).filter(relay_transaction__user_id=user.pk)
    calls = list(attempts.values_list("relay_transaction_id", flat=True)) if hash_part else None
    params = {
        "user": user.pk,
        "limit": limit + 1,
        "kinds": ["call"] if hash_part else list(kinds),
        "calls": calls,
        **before._asdict(),
    }
    rows = [Happening(**dict(zip(_MEMBERS, row, strict=True))) for row in db.all_rows(_Sql.timeline, params)]
    shown = rows[:limit]
    return Page(shown, _after(shown, before) if len(rows) > limit else None)


def _after(rows: list[Happening], before: Position) -> Position:
    last = {row.kind: row for row in rows}
    position = before._asdict()
    if "call" in last:
        position["call"] = last["call"].key
    if "entry" in last:
        position["entry"] = last["entry"].key
    if "check-in" in last:
        position |= {"day": str(last["check-in"].day), "attempt": last["check-in"].attempt}
    return Position(**position)


_MEMBERS = tuple(Happening.__dataclass_fields__)
# The length to read of a payload: enough for the call's head and for the actions that are named.
_PAYLOAD_BYTES = 4_096


class _Sql(
    Statements,
    file=__file__,
    payload_bytes=str(_PAYLOAD_BYTES),
    other_sources=literals(*OF_OTHER_LISTS),
    members=", ".join(_MEMBERS),
):
    timeline: str
