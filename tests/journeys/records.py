"""What stands in the service's database, read past the service."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

import psycopg
from psycopg.rows import class_row

Row = TypeVar("Row")

_CALLS = """
SELECT call.id, call.transaction_hash, call.status, call.terminal_status, call.failure_code, call.relay_nonce,
       call.real_cost, hold.status AS hold, hold.amount AS held,
       coalesce(hold.captured_amount, 0) AS captured, relayer.address AS relayer
FROM relay_relaytransaction AS call
JOIN credits_hold AS hold ON hold.id = call.hold_id
JOIN relay_relayer AS relayer ON relayer.id = call.relayer_id
WHERE call.profile_address = %s ORDER BY call.id
"""
_ATTEMPTS = """
SELECT attempt.transaction_hash, attempt.kind, attempt.status, attempt.account_nonce,
       attempt.node_message, relayer.address AS relayer
FROM relay_attempt AS attempt
JOIN relay_relayer AS relayer ON relayer.id = attempt.relayer_id
WHERE attempt.relay_transaction_id = %s ORDER BY attempt.sequence
"""
_UNSENT = """
SELECT count(*) FROM relay_attempt AS attempt
JOIN relay_relaytransaction AS call ON call.id = attempt.relay_transaction_id
WHERE call.profile_address = %s AND attempt.status = 'signed'
"""
_IN_PROGRESS = """
SELECT count(*) FROM relay_relaytransaction
WHERE profile_address = ANY (%s) AND status IN ('Pending', 'Submitted')
"""
_ACCOUNT = """
SELECT account.balance, account.held FROM credits_account AS account
JOIN users_user AS owner ON owner.id = account.user_id WHERE owner.profile_address = %s
"""
_CHARGES = """
SELECT entry.amount FROM credits_entry AS entry
JOIN credits_account AS account ON account.id = entry.account_id
JOIN users_user AS owner ON owner.id = account.user_id
WHERE owner.profile_address = %s AND entry.source = 'RELAY_TRANSACTION' ORDER BY entry.id
"""
_LEFT = """
SELECT count(*) FROM users_accountdeletion AS deletion JOIN users_user AS owner ON owner.id = deletion.user_id
WHERE owner.profile_address = %s AND deletion.billing_ended_at IS NOT NULL
"""
_RELAYERS = "SELECT address, next_account_nonce FROM relay_relayer ORDER BY id"
_ACCOUNT_NONCES = """
SELECT attempt.account_nonce FROM relay_attempt AS attempt
JOIN relay_relayer AS relayer ON relayer.id = attempt.relayer_id
WHERE relayer.address = %s AND attempt.status = 'mined' ORDER BY attempt.account_nonce
"""
_SESSIONS = """
SELECT count(*) AS living FROM users_signinsession AS session
JOIN users_user AS owner ON owner.id = session.user_id
WHERE owner.profile_address = %s AND session.revoked_at IS NULL
"""
_UNUSED_TOKENS = """
SELECT count(*) AS unused FROM users_refreshtoken AS token
JOIN users_signinsession AS session ON session.id = token.session_id
JOIN users_user AS owner ON owner.id = session.user_id
WHERE owner.profile_address = %s AND token.used_at IS NULL
"""
_LOCK_ACCOUNT = """
SELECT account.id FROM credits_account AS account
JOIN users_user AS owner ON owner.id = account.user_id WHERE owner.profile_address = %s
FOR UPDATE OF account
"""
_LOCK_ATTEMPT = "SELECT id FROM relay_attempt WHERE transaction_hash = %s FOR UPDATE"
_LEASE = """
UPDATE gateway_common_lease
SET owner = 'a test', fence = nextval(pg_get_serial_sequence('gateway_common_lease', 'fence')),
    expires_at = statement_timestamp() + interval '1 hour'
WHERE name LIKE 'relay.%%.' || %s RETURNING fence
"""
_END_LEASE = "DELETE FROM gateway_common_lease WHERE name LIKE 'relay.%%.' || %s RETURNING fence"
_BLOCKED = "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))"


@dataclass(frozen=True)
class Call:
    """A relay transaction with its hold."""

    id: int
    transaction_hash: str
    status: str
    terminal_status: str
    failure_code: str
    relay_nonce: Decimal
    real_cost: int
    hold: str
    held: int
    captured: int
    relayer: str


@dataclass(frozen=True)
class Attempt:
    """One signed transaction of a call."""

    transaction_hash: str
    kind: str
    status: str
    account_nonce: int
    node_message: str
    relayer: str


@dataclass(frozen=True)
class Account:
    """A user's balance, and how much of it is held, in credits."""

    balance: int
    held: int


@dataclass(frozen=True)
class Relayer:
    """A sending account and the next account nonce that it will use."""

    address: str
    next_account_nonce: int


class Lock:
    """A row that the test holds, so that the service has to wait for it."""

    def __init__(self, records: "Records", holder: int) -> None:
        self._records, self._holder = records, holder

    @property
    def is_waited_for(self) -> bool:
        """Whether another session is stuck behind the lock."""
        return self._records.sessions_behind(self._holder) > 0


class Records:
    """Readings of one database."""

    def __init__(self, database_url: str) -> None:
        self._url = database_url

    def calls(self, profile_address: str) -> list[Call]:
        """Return the relay transactions of a profile, oldest first."""
        return self._read(Call, _CALLS, profile_address)

    def attempts(self, call: Call) -> list[Attempt]:
        """Return everything that was signed for a call, in order."""
        return self._read(Attempt, _ATTEMPTS, call.id)

    def unsent(self, profile_address: str) -> int:
        """Return how many signed transactions of a profile no node has taken yet."""
        return self._numbers(_UNSENT, profile_address)[0]

    def in_progress(self, profile_addresses: Sequence[str]) -> int:
        """Return how many relay transactions of these profiles are not settled."""
        return self._numbers(_IN_PROGRESS, list(profile_addresses))[0]

    def account(self, profile_address: str) -> Account:
        """Return the credit account of a profile."""
        return self._read(Account, _ACCOUNT, profile_address)[0]

    def charges(self, profile_address: str) -> list[int]:
        """Return what a profile was charged for relay transactions, one positive number per ledger entry."""
        return [-amount for amount in self._numbers(_CHARGES, profile_address)]

    def relayers(self) -> list[Relayer]:
        """Return the relayers."""
        return self._read(Relayer, _RELAYERS)

    def mined_account_nonces(self, relayer: str) -> list[int]:
        """Return the account nonces of a relayer that the tracker has seen mined, ascending."""
        return self._numbers(_ACCOUNT_NONCES, relayer)

    def living_sessions(self, profile_address: str) -> int:
        """Return how many sign-ins of a profile still count."""
        return self._numbers(_SESSIONS, profile_address)[0]

    def unused_refresh_tokens(self, profile_address: str) -> int:
        """Return how many refresh tokens of a profile have not been exchanged."""
        return self._numbers(_UNUSED_TOKENS, profile_address)[0]

    def sessions_behind(self, holder: int) -> int:
        """Return how many sessions of the database wait for the one with this process id."""
        return self._numbers(_BLOCKED, holder)[0]

    def has_left_stripe(self, profile_address: str) -> bool:
        """Return whether the account is being deleted, and nothing is left of it at Stripe."""
        return self._numbers(_LEFT, profile_address)[0] == 1

    @contextmanager
    def leased(self, loop: str) -> Iterator[None]:
        """Keep every worker from running a loop for the length of the block."""
        self._numbers(_LEASE, loop)
        try:
            yield
        finally:
            self._numbers(_END_LEASE, loop)

    @contextmanager
    def locked_account(self, profile_address: str) -> Iterator[Lock]:
        """Hold the row of a credit account for the length of the block."""
        with self._locked(_LOCK_ACCOUNT, profile_address) as lock:
            yield lock

    @contextmanager
    def locked_attempt(self, transaction_hash: str) -> Iterator[Lock]:
        """Hold the row of an attempt for the length of the block."""
        with self._locked(_LOCK_ATTEMPT, transaction_hash) as lock:
            yield lock

    @contextmanager
    def _locked(self, statement: str, *parameters: object) -> Iterator[Lock]:
        with psycopg.connect(self._url) as connection:
            assert connection.execute(statement.encode(), parameters).fetchone() is not None
            yield Lock(self, connection.info.backend_pid)
            connection.rollback()

    def _read(self, kind: type[Row], statement: str, *parameters: object) -> list[Row]:
        with psycopg.connect(self._url) as connection, connection.cursor(row_factory=class_row(kind)) as rows:
            return rows.execute(statement.encode(), parameters).fetchall()

    def _numbers(self, statement: str, *parameters: object) -> list[int]:
        with psycopg.connect(self._url) as connection:
            rows = connection.execute(statement.encode(), parameters).fetchall()
        return [int(row[0]) for row in rows]
