"""A history of ledger entries and relay transactions, written by SQL that runs on the tables of any commit."""

from dataclasses import dataclass

import psycopg

# Copies an existing row and changes only what must be unique, whatever columns the table has.
_ENTRIES = """
WITH account AS (
    SELECT account.* FROM credits_account AS account JOIN users_user AS person ON person.id = account.user_id
    WHERE person.profile_address = ANY(%(profiles)s)
), pattern AS (
    SELECT to_jsonb(entry) AS row FROM credits_entry AS entry ORDER BY id LIMIT 1
), made AS (
    INSERT INTO credits_entry
    SELECT made.* FROM account, pattern, generate_series(1, %(each)s) AS n,
    LATERAL jsonb_populate_record(NULL::credits_entry, row || jsonb_build_object(
        'id', nextval(pg_get_serial_sequence('credits_entry', 'id')), 'account_id', account.id,
        'amount', 1, 'source', 'SURVEYS', 'key', 'bench:' || account.id || ':' || account.version + n,
        'balance_before', balance + n - 1, 'balance_after', balance + n, 'account_version', version + n,
        'actor_id', NULL, 'reason', '', 'created_at', now() - interval '90 days' * (1 - n::float / %(each)s)
    )) AS made
)
UPDATE credits_account AS kept SET balance = kept.balance + %(each)s, version = kept.version + %(each)s
FROM account WHERE kept.id = account.id
"""
_CALLS = """
WITH account AS (
    SELECT account.id, user_id, profile_address FROM credits_account AS account
    JOIN users_user AS person ON person.id = account.user_id WHERE person.profile_address = ANY(%(profiles)s)
), pattern AS (
    SELECT to_jsonb(call) AS call, to_jsonb(hold) AS hold FROM relay_relaytransaction AS call
    JOIN credits_hold AS hold ON hold.id = call.hold_id WHERE call.status = 'Success' ORDER BY call.id LIMIT 1
), holds AS (
    INSERT INTO credits_hold
    SELECT made.* FROM account, pattern,
    LATERAL (SELECT id FROM credits_entry WHERE account_id = account.id AND source = 'SURVEYS'
             ORDER BY id DESC LIMIT %(each)s) AS entry,
    LATERAL jsonb_populate_record(NULL::credits_hold, pattern.hold || jsonb_build_object(
        'id', nextval(pg_get_serial_sequence('credits_hold', 'id')), 'account_id', account.id,
        'key', 'bench:' || entry.id, 'entry_id', entry.id
    )) AS made
    RETURNING id, account_id
)
INSERT INTO relay_relaytransaction
SELECT made.* FROM holds JOIN account ON account.id = holds.account_id, pattern,
LATERAL jsonb_populate_record(NULL::relay_relaytransaction, pattern.call || jsonb_build_object(
    'id', nextval(pg_get_serial_sequence('relay_relaytransaction', 'id')), 'user_id', account.user_id,
    'profile_address', account.profile_address, 'hold_id', holds.id, 'relay_nonce', -holds.id,
    'digest', '0x' || md5('a' || holds.id) || md5('b' || holds.id),
    'transaction_hash', '0x' || md5('c' || holds.id) || md5('d' || holds.id)
)) AS made
"""


@dataclass(frozen=True)
class History:
    """Writes rows into one database, with triggers and foreign keys disabled."""

    database_url: str

    def add_entries(self, profiles: list[str], *, each: int) -> None:
        """Write this many earnings of one credit per profile; balances stay consistent."""
        self._write([_ENTRIES], profiles, each)

    def add_calls(self, profiles: list[str], *, each: int) -> None:
        """Also write this many calls per profile. They are on no chain, so reconcile nothing afterwards."""
        self._write([_ENTRIES, _CALLS], profiles, each)

    def count_entries(self) -> int:
        """Return the number of ledger entries."""
        with psycopg.connect(self.database_url) as connection:
            row = connection.execute("SELECT count(*) FROM credits_entry").fetchone()
        return int(row[0]) if row else 0

    def _write(self, statements: list[str], profiles: list[str], each: int) -> None:
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            connection.execute("SET session_replication_role = replica")
            for statement in statements:
                connection.execute(statement, {"profiles": profiles, "each": each})
            connection.execute("VACUUM ANALYZE")
