"""Partitioning ledger entries by month: a table of keys keeps each key unique across partitions."""

# ruff: noqa: S608 - no external input

from lab.rehearsals.divisions import Division

_ACCOUNTS = 1000

# Two years of entries, mostly charges, without rows of users.
_FILL = (
    "SET session_replication_role = replica",
    f"""
INSERT INTO credits_account (user_id, balance, held, open_holds, version)
SELECT n, %(rows)s / {_ACCOUNTS}, 0, 0, %(rows)s / {_ACCOUNTS} FROM generate_series(1, {_ACCOUNTS}) AS n
""",
    f"""
INSERT INTO credits_entry
    (account_id, amount, source, key, balance_before, balance_after, account_version, reason, created_at)
SELECT account.id, 1, CASE WHEN n %% 10 = 0 THEN 'SURVEYS' ELSE 'RELAY_TRANSACTION' END, 'rehearsal:' || n,
       n / {_ACCOUNTS}, n / {_ACCOUNTS} + 1, n / {_ACCOUNTS} + 1, '',
       now() - interval '730 days' * ((%(rows)s - n)::float / %(rows)s)
FROM generate_series(0, %(rows)s - 1) AS n JOIN credits_account AS account ON account.user_id = n %% {_ACCOUNTS} + 1
ORDER BY n
""",
    "SET session_replication_role = origin",
    "VACUUM (ANALYZE) credits_entry",
)
_LOCKED = "SELECT id, balance, version FROM credits_account WHERE user_id = %(number)s FOR NO KEY UPDATE"
_COLUMNS = "account_id, amount, source, key, balance_before, balance_after, account_version, reason"
_MOVED = """
UPDATE credits_account AS account SET balance = posted.balance_after, version = posted.account_version
FROM posted WHERE account.id = posted.account_id
"""
# As `POST_ENTRY` of `credits.services.statements`.
_POST = f"""
WITH locked AS ({_LOCKED}), posted AS (
    INSERT INTO credits_entry ({_COLUMNS})
    SELECT id, 1, 'SURVEYS', %(key)s, balance, balance + 1, version + 1, '' FROM locked
    ON CONFLICT (key) DO NOTHING RETURNING *
), moved AS ({_MOVED})
SELECT * FROM posted
"""


def _post_divided(key: str, time: str) -> str:
    """Return the statement that posts an entry after the swap; the table of keys makes it unique."""
    return f"""
WITH locked AS ({_LOCKED}), first AS (
    INSERT INTO credits_postedkey (key) SELECT {key} FROM locked ON CONFLICT DO NOTHING RETURNING key
), posted AS (
    INSERT INTO credits_entry ({_COLUMNS}, created_at)
    SELECT id, 1, 'SURVEYS', key, balance, balance + 1, version + 1, '', {time} FROM locked, first
    RETURNING *
), moved AS ({_MOVED})
SELECT * FROM posted
"""


_OF_USER = "account_id = (SELECT id FROM credits_account WHERE user_id = %(number)s)"
_READS = {
    "a page of a history": f"SELECT * FROM credits_entry WHERE {_OF_USER} ORDER BY account_version DESC LIMIT 20",
    "an entry by its id": "SELECT * FROM credits_entry WHERE id = %(id)s",
    "an entry by its key": "SELECT * FROM credits_entry WHERE key = %(old)s",
    "the newest entries": "SELECT * FROM credits_entry ORDER BY id DESC LIMIT 100",
    "sums of the last 30 days": "SELECT source, sum(amount) FROM credits_entry"
    " WHERE created_at >= now() - interval '30 days' GROUP BY source",
}

# The trigger is created before the table of keys is filled, so no key is missed.
_GUARD = {
    "unique index on id and month": [
        "CREATE UNIQUE INDEX CONCURRENTLY entry_id_month ON credits_entry (id, created_at)"
    ],
    "unique index on key and month": [
        "CREATE UNIQUE INDEX CONCURRENTLY entry_key_month ON credits_entry (key, created_at)"
    ],
    "unique index on account, version and month": [
        "CREATE UNIQUE INDEX CONCURRENTLY entry_order_month ON credits_entry (account_id, account_version, created_at)"
    ],
    "table of keys, and the trigger that adds to it": [
        'CREATE TABLE credits_postedkey (key varchar(255) COLLATE "C" PRIMARY KEY)',
        """
CREATE FUNCTION add_key() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO credits_postedkey VALUES (NEW.key) ON CONFLICT DO NOTHING; RETURN NULL;
END $$
""",
        "CREATE TRIGGER add_key AFTER INSERT ON credits_entry FOR EACH ROW EXECUTE FUNCTION add_key()",
    ],
    "its filling": ["INSERT INTO credits_postedkey SELECT key FROM credits_entry ON CONFLICT DO NOTHING"],
}
_CHECKS = {
    "every version of an account is there once": """
SELECT bool_and(account.version = counted.number AND account.version = counted.newest)
FROM credits_account AS account JOIN (
    SELECT account_id, count(*) AS number, max(account_version) AS newest FROM credits_entry GROUP BY account_id
) AS counted ON counted.account_id = account.id
""",
    "every key is in the table of keys, and in no entry twice": """
SELECT count(*) = count(DISTINCT entry.key) AND count(*) = (SELECT count(*) FROM credits_postedkey)
FROM credits_entry AS entry JOIN credits_postedkey USING (key)
""",
}
_REPEATS = {
    "a key posts once": _post_divided("%(old)s", "now() + interval '40 days'"),
}
ENTRIES = Division(
    table="credits_entry",
    fill=_FILL,
    writes={"post an entry": _POST},
    writes_divided={"post an entry": _post_divided("%(key)s", "now()")},
    reads=_READS,
    guard=_GUARD,
    handed_over="add_key",
    # The foreign key to the actor is deferred until commit, even if it is NULL.
    locked="credits_account, credits_entry, users_user",
    rights="SELECT, INSERT",
    checks=_CHECKS,
    repeats=_REPEATS,
)
