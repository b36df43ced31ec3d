"""The rows as raw SQL sees them, past the code under test: everything about some accounts, in one statement."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from django.db import connection

# clock_timestamp() moves on within a transaction, as the statements of the service see it.
_SNAPSHOT = """
SELECT account.id, json_build_object(
    'balance', balance, 'held', held, 'version', version,
    'permanent', coalesce(permanent_experience, 0), 'subscriber', coalesce(subscriber_experience, 0),
    'open_holds', (
        SELECT coalesce(sum(amount), 0) FROM credits_hold WHERE account_id = account.id AND status = 'HELD'
    ),
    'entries', (
        SELECT coalesce(json_agg(json_build_array(
            amount, source, account_version, balance_before, balance_after, key
        ) ORDER BY account_version), '[]') FROM credits_entry WHERE account_id = account.id
    ),
    'experience', (
        SELECT coalesce(json_agg(json_build_array(track, amount, total_after) ORDER BY id), '[]')
        FROM rewards_experience WHERE progress_id = progress.id
    ),
    'active', (
        SELECT coalesce(json_agg(json_build_array(modifier_type, value::text)), '[]') FROM rewards_modifier
        WHERE user_id = account.user_id AND created_at <= clock_timestamp() AND clock_timestamp() < expires_at
    ),
    'earnings', (
        SELECT coalesce(json_agg(json_build_array(network.slug, external_id, state, credits)), '[]')
        FROM earnings_postback AS postback JOIN earnings_adnetwork AS network ON network.id = network_id
        WHERE user_id = account.user_id AND kind = 'CREDIT'
    )
)::text
FROM credits_account AS account LEFT JOIN rewards_progress AS progress ON progress.user_id = account.user_id
WHERE account.id = ANY(%s)
"""
_AGE = """
UPDATE rewards_modifier SET created_at = created_at - %s * interval '1 minute',
    expires_at = expires_at - %s * interval '1 minute'
WHERE user_id = ANY(%s)
"""


class Entry(NamedTuple):
    """A row of the ledger."""

    amount: int
    source: str
    version: int
    before: int
    after: int
    key: str


@dataclass(frozen=True)
class Snapshot:
    """An account's running totals, and the rows that explain them."""

    balance: int
    held: int
    version: int
    permanent: int
    subscriber: int
    open_holds: int
    entries: list[Entry]
    experience: list[tuple[str, int, int]]
    active: list[tuple[str, Fraction]]
    earnings: dict[tuple[str, str], tuple[str, int]]


def query(sql: str, *params: Any) -> list[tuple[Any, ...]]:
    """Execute SQL and return its rows."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall() if cursor.description else []


def snapshots(account_ids: Sequence[int]) -> dict[int, Snapshot]:
    """Return the accounts' rows at one moment."""
    return {pk: _read(json.loads(said)) for pk, said in query(_SNAPSHOT, list(account_ids))}


def _read(said: dict[str, Any]) -> Snapshot:
    lists = {
        "entries": [Entry(*row) for row in said["entries"]],
        "experience": [tuple(row) for row in said["experience"]],
        "active": sorted((kind, Fraction(value)) for kind, value in said["active"]),
        "earnings": {(slug, name): (state, worth) for slug, name, state, worth in said["earnings"]},
    }
    return Snapshot(**{**said, **lists})


def age_modifiers(user_ids: Sequence[int], minutes: int) -> None:
    """Move the users' modifiers into the past: the database's clock cannot be set."""
    query(_AGE, minutes, minutes, list(user_ids))
