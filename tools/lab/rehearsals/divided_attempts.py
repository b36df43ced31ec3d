"""Partitioning attempts by month: a table of slots keeps each account nonce unique across partitions."""

# ruff: noqa: S608 - no external input

from lab.rehearsals.divisions import Division

_RELAYERS, _CALLS = 16, 1000
_HASH = "'0x' || md5('a' || {0}) || md5('b' || {0})"

# Two years of mined attempts, 20 per block, with the size of a token transfer. New attempts belong to the thousand
# calls; old ones to calls that no statement reads.
_FILL = (
    "SET session_replication_role = replica",
    f"""
INSERT INTO relay_relayer
    (chain_id, address, next_account_nonce, mined_account_nonce, balance_wei, is_active, created_at)
SELECT 42, '0x' || n, (%(rows)s - n) / {_RELAYERS} + 1, (%(rows)s - n) / {_RELAYERS} + 1, 10^24, true, now()
FROM generate_series(1, {_RELAYERS}) AS n
""",
    f"""
INSERT INTO relay_relaytransaction
    (chain_id, user_id, profile_address, key_manager_address, controller_address, digest, generation, channel,
     relay_nonce, validity, payload, signature, is_follower, relayer_id, hold_id, transaction_hash, gas_limit,
     expected_cost, real_cost, credits_before, status, terminal_status, failure_code, failure_detail, request_id,
     created_at)
SELECT 42, n, '', '', '', n, 0, 0, n, 0, '', '', false, 1, n, n, 100000, 2, 1, 100, 'Submitted', '', '', '', '', now()
FROM generate_series(1, {_CALLS}) AS n
""",
    f"""
INSERT INTO relay_attempt
    (chain_id, relay_transaction_id, relayer_id, account_nonce, sequence, kind, status, transaction_hash, raw,
     gas_limit, max_fee_per_gas_wei, max_priority_fee_per_gas_wei, node_message, block_number, block_hash, succeeded,
     gas_used, effective_gas_price_wei, created_at, first_sent_at, sent_at, mined_at)
SELECT 42, {_CALLS} + n, n %% {_RELAYERS} + 1, n / {_RELAYERS}, 0, 'call', 'mined', {_HASH.format("n")},
       decode(repeat(md5(n::text), 37), 'hex'), 100000, 10^9, 1, '', n / 20, {_HASH.format("n / 20")}, true,
       90000, 10^9, at, at, at, at
FROM generate_series(0, %(rows)s - 1) AS n,
     LATERAL (SELECT now() - interval '730 days' * ((%(rows)s - n)::float / %(rows)s) AS at) AS signed
ORDER BY n
""",
    "SET session_replication_role = origin",
    "VACUUM (ANALYZE) relay_attempt",
)
# The writes of `relay_insert_calls`, `_MARK_SENT` and `_UPDATE_RECEIPTS` for one attempt.
_WRITES = {
    "store a signed attempt": f"""
WITH locked AS (
    UPDATE relay_relayer SET next_account_nonce = next_account_nonce + 1
    WHERE id = %(number)s %% {_RELAYERS} + 1 RETURNING id, next_account_nonce - 1 AS account_nonce
), call AS (
    SELECT id FROM relay_relaytransaction WHERE id = %(number)s
)
INSERT INTO relay_attempt
    (chain_id, relay_transaction_id, relayer_id, account_nonce, sequence, kind, status, transaction_hash, raw,
     gas_limit, max_fee_per_gas_wei, max_priority_fee_per_gas_wei, node_message, block_hash, created_at)
SELECT 42, call.id, locked.id, account_nonce, 0, 'call', 'signed', {_HASH.format("%(key)s::text")},
       decode(repeat(md5(%(key)s::text), 37), 'hex'), 100000, 10^9, 1, '', '', now() FROM locked, call
RETURNING id
""",
    "mark it as sent": """
UPDATE relay_attempt SET status = 'sent', sent_at = now(), first_sent_at = now()
WHERE id = ANY(ARRAY[%(id)s]::bigint[]) RETURNING id
""",
    "write its receipt": """
UPDATE relay_attempt AS attempt
SET status = 'mined', block_number = 1, block_hash = '0x', succeeded = true, gas_used = 90000,
    effective_gas_price_wei = 1, mined_at = now()
FROM unnest(ARRAY[%(id)s]::bigint[]) AS receipt (id) WHERE attempt.id = receipt.id RETURNING attempt.id
""",
}
_READS = {
    "what waits for its first broadcast": """
SELECT id, raw FROM relay_attempt WHERE chain_id = 42 AND status = 'signed' ORDER BY relayer_id, account_nonce
""",
    "what a relayer has in flight": """
SELECT sum(gas_limit * max_fee_per_gas_wei) FROM relay_attempt
WHERE relayer_id = 1 AND account_nonce >= (SELECT mined_account_nonce FROM relay_relayer WHERE id = 1)
  AND status NOT IN ('withdrawn', 'mined')
""",
    "the attempts of a call": f"SELECT * FROM relay_attempt WHERE relay_transaction_id = {_CALLS} + %(id)s",
    "an attempt by its hash": f"""
SELECT * FROM relay_attempt WHERE chain_id = 42 AND transaction_hash = {_HASH.format("%(id)s::bigint")}
""",
    "an account nonce": f"""
SELECT * FROM relay_attempt
WHERE relayer_id = %(id)s %% {_RELAYERS} + 1 AND account_nonce = %(id)s / {_RELAYERS}
""",
    "the attempts of a block": "SELECT id FROM relay_attempt WHERE block_number = %(id)s / 20",
    "the newest attempts": "SELECT * FROM relay_attempt ORDER BY id DESC LIMIT 100",
    "gas of the last 30 days": """
SELECT sum(gas_used * effective_gas_price_wei) FROM relay_attempt WHERE created_at >= now() - interval '30 days'
""",
}
_GUARD = {
    "unique index on id and month": [
        "CREATE UNIQUE INDEX CONCURRENTLY attempt_id_month ON relay_attempt (id, created_at)"
    ],
    "unique index on hash and month": [
        "CREATE UNIQUE INDEX CONCURRENTLY attempt_hash_month ON relay_attempt (chain_id, transaction_hash, created_at)"
    ],
    "unique index on slot and month": [
        """
CREATE UNIQUE INDEX CONCURRENTLY attempt_slot_month
ON relay_attempt (relayer_id, account_nonce, sequence, created_at)
"""
    ],
    # No statement inserts an attempt with ON CONFLICT, so a taken slot must stay an error.
    "table of slots, and the trigger that takes them": [
        """
CREATE TABLE relay_takenslot (
    relayer_id bigint, account_nonce bigint, sequence smallint, chain_id bigint NOT NULL,
    transaction_hash varchar(66) NOT NULL,
    PRIMARY KEY (relayer_id, account_nonce, sequence), UNIQUE (chain_id, transaction_hash)
)
""",
        """
CREATE FUNCTION take_slot() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO relay_takenslot
    VALUES (NEW.relayer_id, NEW.account_nonce, NEW.sequence, NEW.chain_id, NEW.transaction_hash);
    RETURN NULL;
END $$
""",
        "CREATE TRIGGER take_slot AFTER INSERT ON relay_attempt FOR EACH ROW EXECUTE FUNCTION take_slot()",
    ],
    "its filling": [
        """
INSERT INTO relay_takenslot SELECT relayer_id, account_nonce, sequence, chain_id, transaction_hash
FROM relay_attempt ON CONFLICT DO NOTHING
"""
    ],
}
_CHECKS = {
    "each account nonce of a relayer is used once, without a gap": """
SELECT bool_and(relayer.next_account_nonce = used.number AND used.number = used.nonces)
FROM relay_relayer AS relayer JOIN (
    SELECT relayer_id, count(*) AS number, count(DISTINCT account_nonce) AS nonces
    FROM relay_attempt GROUP BY relayer_id
) AS used ON used.relayer_id = relayer.id
""",
    "each attempt has its slot": """
SELECT count(*) = (SELECT count(*) FROM relay_takenslot)
FROM relay_attempt JOIN relay_takenslot USING (relayer_id, account_nonce, sequence, chain_id, transaction_hash)
""",
}
_AGAIN = """
INSERT INTO relay_attempt
    (chain_id, relay_transaction_id, relayer_id, account_nonce, sequence, kind, status, transaction_hash, raw,
     gas_limit, max_fee_per_gas_wei, max_priority_fee_per_gas_wei, node_message, block_hash, created_at)
SELECT chain_id, {calls}, relayer_id, {nonce}, sequence, kind, 'signed', {hash}, raw, gas_limit, 1, 1, '', '',
       now() + interval '40 days'
FROM relay_attempt WHERE id = %(id)s RETURNING id
"""
_REPEATS = {
    "an account nonce is used once": _AGAIN.format(calls=_CALLS, nonce="account_nonce", hash="%(key)s"),
    "a hash is stored once": _AGAIN.format(
        calls=_CALLS, nonce="account_nonce + 1000000000", hash="transaction_hash"
    ),
}
ATTEMPTS = Division(
    table="relay_attempt",
    fill=_FILL,
    writes=_WRITES,
    writes_divided=_WRITES,
    reads=_READS,
    guard=_GUARD,
    handed_over="",
    locked="relay_relayer, relay_relaytransaction, relay_attempt",
    rights="SELECT, INSERT, UPDATE, DELETE",
    checks=_CHECKS,
    repeats=_REPEATS,
)
