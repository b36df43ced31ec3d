"""
The SQL of accepting a call, one statement per step; their order is in `execution`.

Every step is a locked read or a conditional write, so nothing is read in Python and
then relied upon: a row that no longer fits when its lock is granted is not returned.

The SQL that brings many rows up to date with the chain: one statement, however many there are.

Each is given arrays of equal length, one row of a table per place.
"""

# When the user's newest calls without effect ended. A relayer without funds, a lost account nonce or staff
# cancel calls as well, which is not the caller's doing.
DEAD_ENDS_OF_USER = """
SELECT settled_at FROM relay_relaytransaction
WHERE user_id = %(user)s AND settled_at > %(since)s
  AND status IN ('Failed', 'Expired', 'Cancelled', 'ExecutedExternally')
  AND (status <> 'Cancelled' OR end_code = %(predecessor_failed)s)
ORDER BY settled_at DESC LIMIT %(most)s
"""

# How many relayers work, and how many account nonces the user's calls hold.
SHARE_OF_USER = """
SELECT (SELECT count(*) FROM relay_relayer WHERE is_active),
       (SELECT count(*) FROM relay_attempt AS attempt
        JOIN relay_relaytransaction AS call ON call.id = attempt.relay_transaction_id
        WHERE call.user_id = %(user)s AND call.status IN ('Pending', 'Submitted')
          AND attempt.status IN ('signed', 'sent'))
"""

# What stands on a channel from the chain's next nonce on, and what is still in progress.
STANDING_OF_CHANNEL = """
SELECT relay_nonce, relayer_id, status IN ('Pending', 'Submitted') AS is_in_progress, ends_as <> '' AS is_ending
FROM relay_relaytransaction
WHERE key_manager_address = %(key_manager)s AND controller_address = %(controller)s AND channel = %(channel)s
  AND (status IN ('Pending', 'Submitted')
       OR status IN ('Success', 'ExecutedExternally') AND relay_nonce >= %(chain_nonce)s)
"""

# The relayer that a channel sticks to, if it has room. Waits for whoever has it locked.
LOCK_RELAYER = """
SELECT id, address FROM relay_relayer
WHERE id = %(relayer)s AND is_active AND address = ANY(%(addresses)s)
  AND next_account_nonce < mined_account_nonce + %(cap)s AND balance_wei >= %(worst_cost_wei)s
FOR NO KEY UPDATE
"""

# The relayer with the fewest account nonces in flight; waits for whoever has it locked.
LOCK_LEAST_LOADED = """
SELECT id, address FROM relay_relayer
WHERE is_active AND address = ANY(%(addresses)s)
  AND next_account_nonce < mined_account_nonce + %(cap)s AND balance_wei >= %(worst_cost_wei)s
ORDER BY next_account_nonce - mined_account_nonce, id LIMIT 1
FOR NO KEY UPDATE
"""

# The same among those that nobody else has locked just now.
LOCK_LEAST_LOADED_FREE = LOCK_LEAST_LOADED + "SKIP LOCKED"

# Take the next account nonce, if the balance covers this call besides what is in flight. The relayer was
# locked in a statement before this one, so what others stored for it is seen here. Attempts that were
# withdrawn or mined cost nothing any more.
TAKE_ACCOUNT_NONCE = """
UPDATE relay_relayer AS relayer SET next_account_nonce = next_account_nonce + 1
WHERE id = %(relayer)s AND balance_wei >= %(worst_cost_wei)s + (
    SELECT coalesce(sum(gas_limit * max_fee_per_gas_wei), 0) FROM relay_attempt
    WHERE relayer_id = relayer.id AND account_nonce >= relayer.mined_account_nonce
      AND status NOT IN ('withdrawn', 'mined')
)
RETURNING next_account_nonce - 1
"""

# The call and the bytes that carry it: both rows or none.
STORE_CALL = """
WITH stored AS (
    INSERT INTO relay_relaytransaction (
        user_id, profile_address, key_manager_address, controller_address, digest, generation, channel,
        relay_nonce, validity, payload, signature, is_follower, relayer_id, hold_id, transaction_hash,
        gas_limit, expected_cost, real_cost, credits_before, status, ends_as, end_code, end_detail,
        request_id, created_at
    ) VALUES (
        %(user)s, %(profile)s, %(key_manager)s, %(controller)s, %(digest)s, %(generation)s, %(channel)s,
        %(relay_nonce)s, %(validity)s, %(payload)s, %(signature)s, %(is_follower)s, %(relayer)s, %(hold)s,
        %(transaction_hash)s, %(gas_limit)s, %(expected_cost)s, 0, %(credits_before)s, 'Pending', '', '', '',
        %(request_id)s, %(now)s
    ) RETURNING id, relayer_id, transaction_hash, gas_limit, created_at
)
INSERT INTO relay_attempt (
    relay_transaction_id, relayer_id, account_nonce, sequence, kind, status, transaction_hash, raw, gas_limit,
    max_fee_per_gas_wei, max_priority_fee_per_gas_wei, node_message, block_hash, created_at
)
SELECT id, relayer_id, %(account_nonce)s, 0, 'call', 'signed', transaction_hash, %(raw)s, gas_limit,
       %(max_fee_wei)s, %(max_tip_wei)s, '', '', created_at
FROM stored
RETURNING id
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
