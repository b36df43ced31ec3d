"""
The SQL that brings many rows up to what the chain says: one statement, however many they are.

Each is given arrays of equal length, one row of a table per place.
"""

# The caller holds the locks of these rows and has found them in progress.
END_CALLS = """
UPDATE relay_relaytransaction AS asked
SET status = ended.status, real_cost = ended.cost, settled_at = %(now)s, ends_as = '',
    end_code = ended.code, end_detail = ended.detail, transaction_hash = ended.hash
FROM unnest(
    %(ids)s::bigint[], %(statuses)s::text[], %(costs)s::bigint[], %(codes)s::text[], %(details)s::text[],
    %(hashes)s::text[]
) AS ended (id, status, cost, code, detail, hash)
WHERE asked.id = ended.id
RETURNING asked.id
"""

# What the newest block says of attempts: null where it knows nothing of them any more.
NOTE_RECEIPTS = """
UPDATE relay_attempt AS attempt
SET status = told.status, block_number = told.number, block_hash = told.hash, succeeded = told.succeeded,
    gas_used = told.gas, effective_gas_price_wei = told.price, mined_at = told.at
FROM unnest(
    %(ids)s::bigint[], %(statuses)s::text[], %(numbers)s::bigint[], %(hashes)s::text[],
    %(successes)s::boolean[], %(gas)s::bigint[], %(prices)s::numeric[], %(times)s::timestamptz[]
) AS told (id, status, number, hash, succeeded, gas, price, at)
WHERE attempt.id = told.id
RETURNING attempt.id
"""

# What the newest block says of relayers. Where the chain is ahead of us, the next account nonce jumps forward.
# Those that a request holds are left out and not returned: waiting for one would keep the others from all
# requests meanwhile.
NOTE_ACCOUNTS = """
WITH free AS (
    SELECT id FROM relay_relayer WHERE id = ANY(%(ids)s::bigint[]) FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE relay_relayer AS relayer
SET mined_account_nonce = told.nonce, next_account_nonce = greatest(next_account_nonce, told.nonce),
    balance_wei = told.balance, synced_at = %(now)s
FROM unnest(%(ids)s::bigint[], %(nonces)s::bigint[], %(balances)s::numeric[]) AS told (id, nonce, balance)
JOIN free USING (id)
WHERE relayer.id = told.id
RETURNING relayer.id
"""
