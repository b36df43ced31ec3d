"""
The SQL that brings many rows up to date with the chain: one statement, however many there are.

Each is given arrays of equal length, one row of a table per place.
"""

# The caller holds the locks of these rows and has found them in progress.
END_CALLS = """
UPDATE relay_relaytransaction AS asked
SET status = ended.status, real_cost = ended.cost, settled_at = %(now)s, ends_as = '',
    end_code = ended.code, end_detail = ended.detail, transaction_hash = coalesce(ended.hash, asked.transaction_hash)
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
SET status = seen.status, block_number = seen.number, block_hash = seen.hash, succeeded = seen.succeeded,
    gas_used = seen.gas, effective_gas_price_wei = seen.price, mined_at = seen.at
FROM unnest(
    %(ids)s::bigint[], %(statuses)s::text[], %(numbers)s::bigint[], %(hashes)s::text[],
    %(successes)s::boolean[], %(gas)s::bigint[], %(prices)s::numeric[], %(times)s::timestamptz[]
) AS seen (id, status, number, hash, succeeded, gas, price, at)
WHERE attempt.id = seen.id
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
SET mined_account_nonce = seen.nonce, next_account_nonce = greatest(next_account_nonce, seen.nonce),
    balance_wei = seen.balance, synced_at = %(now)s
FROM unnest(%(ids)s::bigint[], %(nonces)s::bigint[], %(balances)s::numeric[]) AS seen (id, nonce, balance)
JOIN free USING (id)
WHERE relayer.id = seen.id
RETURNING relayer.id
"""
