"""
The timeline of a user: relay calls, check-ins and every other change of the balance, newest first, in one statement.

Each of the three lists is read through its own index, in the order of its key, and the lists are merged by time. A
position has a key in each list, so no row is repeated or lost while new ones arrive.
"""

import base64
import binascii
import json
from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple, Self

from credits.models import OF_OTHER_LISTS, EntrySource
from gateway.common import db
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


def timeline_of(*, user: User, before: Position, limit: int) -> Page:
    """Return the newest `limit` rows that are older than a position."""
    params = {"user": user.pk, "limit": limit + 1, **before._asdict()}
    rows = [Happening(**dict(zip(_MEMBERS, row, strict=True))) for row in db.all_rows(_TIMELINE, params)]
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
_OTHERS = ", ".join(f"'{source}'" for source in OF_OTHER_LISTS)

# Each list is sorted by descending `moment`, so merging by it keeps the order of each list.
_TIMELINE = f"""
WITH call AS (
    SELECT id, created_at, min(created_at) OVER (ORDER BY id DESC) AS moment, status, failure_code, transaction_hash,
           expected_cost, hold_id, substring(payload FOR {_PAYLOAD_BYTES}) AS payload
    FROM relay_relaytransaction
    WHERE user_id = %(user)s AND id < %(call)s ORDER BY id DESC LIMIT %(limit)s
), entry AS (
    SELECT entry.*, min(created_at) OVER (ORDER BY account_version DESC) AS moment
    FROM credits_entry AS entry
    WHERE account_id = (SELECT id FROM credits_account WHERE user_id = %(user)s)
      AND source NOT IN ({_OTHERS}) AND account_version < %(entry)s
    ORDER BY account_version DESC LIMIT %(limit)s
), check_in AS (
    SELECT id, day, attempt, created_at, min(created_at) OVER (ORDER BY day DESC, attempt DESC) AS moment,
           (possible_results -> result_place::int)::text AS result
    FROM checkin_checkin
    WHERE user_id = %(user)s AND (day, attempt) < (%(day)s::date, %(attempt)s)
    ORDER BY day DESC, attempt DESC LIMIT %(limit)s
), happening AS (
    SELECT 'call' AS kind, call.id AS key, call.created_at AS at, call.moment,
           coalesce(charge.amount, CASE WHEN hold.status = 'HELD' THEN -call.expected_cost ELSE 0 END)
               + coalesce(back.amount, 0) AS credits,
           coalesce(back.balance_after, charge.balance_after) AS balance_after,
           '{EntrySource.RELAY_TRANSACTION.value}' AS source, '' AS cause, NULL::bigint AS amount_minor, '' AS currency,
           call.status, call.failure_code, call.transaction_hash, coalesce(back.amount, 0) AS cashback,
           coalesce(sponsor.slug, '') AS sponsor, call.payload, NULL::date AS day, NULL::int AS attempt,
           NULL::text AS drop
    FROM call
    JOIN credits_hold AS hold ON hold.id = call.hold_id
    LEFT JOIN credits_entry AS charge ON charge.id = hold.entry_id
    LEFT JOIN credits_entry AS back ON back.key = 'back:' || charge.key
    LEFT JOIN sponsors_sponsoredcall AS sponsored ON sponsored.hold_id = hold.id
    LEFT JOIN sponsors_policyversion AS version ON version.id = sponsored.version_id
    LEFT JOIN sponsors_policy AS policy ON policy.id = version.policy_id
    LEFT JOIN sponsors_sponsor AS sponsor ON sponsor.id = policy.sponsor_id
    UNION ALL
    SELECT 'entry', entry.account_version, entry.created_at, entry.moment, entry.amount, entry.balance_after,
           entry.source, entry.key, payout.amount_minor + payout.tax_minor, coalesce(payout.currency, ''),
           '', '', '', 0, '', ''::bytea, NULL, NULL, NULL
    FROM entry LEFT JOIN payments_payout AS payout ON payout.entry_id = entry.id
    UNION ALL
    SELECT 'check-in', check_in.id, check_in.created_at, check_in.moment, coalesce(won.amount, 0), won.balance_after,
           '{EntrySource.CHECK_IN.value}', '', NULL, '', '', '', '', 0, '', ''::bytea, check_in.day, check_in.attempt,
           check_in.result
    FROM check_in LEFT JOIN credits_entry AS won ON won.key = 'check-in:' || check_in.id
)
SELECT {", ".join(_MEMBERS)} FROM happening ORDER BY moment DESC, kind, key DESC LIMIT %(limit)s
"""  # noqa: S608 (names of our own columns and sources)
