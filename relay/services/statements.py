"""
The SQL of accepting calls.

Each statement is a locked read or a conditional write, so nothing is read in Python and
then relied upon: a row that no longer fits when its lock is granted is not returned.
"""

from relay.models import Attempt, RelayTransaction, sql_values

_STATUS = RelayTransaction.Status
_IN_PROGRESS = sql_values(*RelayTransaction.IN_PROGRESS)
_EXECUTED = sql_values(*RelayTransaction.EXECUTED)
_UNSUCCESSFUL = sql_values(*RelayTransaction.UNSUCCESSFUL)
_UNMINED = sql_values(*Attempt.UNMINED)

# When the user's newest calls ended without effect. Calls that a relayer without funds, a lost account nonce
# or staff cancelled are left out: those are not the caller's doing.
CANCELLED_CALLS_OF_USER = f"""
SELECT settled_at FROM relay_relaytransaction
WHERE user_id = %(user)s AND settled_at > %(since)s
  AND status IN {_UNSUCCESSFUL}
  AND (status <> '{_STATUS.CANCELLED}' OR failure_code = %(predecessor_failed)s)
ORDER BY settled_at DESC LIMIT %(most)s
"""  # noqa: S608 - constants of our own

# How many relayers are active, and how many account nonces the user's calls hold.
SHARE_OF_USER = f"""
SELECT (SELECT count(*) FROM relay_relayer WHERE chain_id = %(chain)s AND is_active),
       (SELECT count(*) FROM relay_attempt AS attempt
        JOIN relay_relaytransaction AS call ON call.id = attempt.relay_transaction_id
        WHERE call.user_id = %(user)s AND call.chain_id = %(chain)s AND call.status IN {_IN_PROGRESS}
          AND attempt.status IN {_UNMINED})
"""  # noqa: S608 - constants of our own

# The active calls of a channel: those in progress, and the executed ones from the chain's next nonce on.
ACTIVE_CALLS_OF_CHANNEL = f"""
SELECT relay_nonce, relayer_id, status IN {_IN_PROGRESS} AS is_in_progress, terminal_status <> '' AS is_ending
FROM relay_relaytransaction
WHERE chain_id = %(chain)s AND key_manager_address = %(key_manager)s AND controller_address = %(controller)s
  AND channel = %(channel)s
  AND (status IN {_IN_PROGRESS} OR status IN {_EXECUTED} AND relay_nonce >= %(chain_nonce)s)
"""  # noqa: S608 - constants of our own

# The relayer of a channel in flight, if it is below its cap. Waits for a transaction that holds its lock.
LOCK_RELAYER = """
SELECT id, address FROM relay_relayer
WHERE id = %(relayer)s AND is_active AND address = ANY(%(addresses)s)
  AND next_account_nonce < mined_account_nonce + %(cap)s AND balance_wei >= %(worst_cost_wei)s
FOR NO KEY UPDATE
"""

# The relayer with the fewest account nonces in flight. Waits for a transaction that holds its lock.
LOCK_LEAST_LOADED = """
SELECT id, address FROM relay_relayer
WHERE chain_id = %(chain)s AND is_active AND address = ANY(%(addresses)s)
  AND next_account_nonce < mined_account_nonce + %(cap)s AND balance_wei >= %(worst_cost_wei)s
ORDER BY next_account_nonce - mined_account_nonce, id LIMIT 1
FOR NO KEY UPDATE
"""

# The same among those that no other transaction has locked.
LOCK_LEAST_LOADED_FREE = LOCK_LEAST_LOADED + "SKIP LOCKED"

# Take the next account nonce, if the balance covers this call besides what is in flight. The relayer was
# locked in a statement before this one, so attempts that others stored for it are seen here. Attempts that
# were withdrawn or mined cost nothing any more.
TAKE_ACCOUNT_NONCE = f"""
UPDATE relay_relayer AS relayer SET next_account_nonce = next_account_nonce + 1
WHERE id = %(relayer)s AND balance_wei >= %(worst_cost_wei)s + (
    SELECT coalesce(sum(gas_limit * max_fee_per_gas_wei), 0) FROM relay_attempt
    WHERE relayer_id = relayer.id AND account_nonce >= relayer.mined_account_nonce
      AND status NOT IN {sql_values(*Attempt.COSTLESS)}
)
RETURNING next_account_nonce - 1
"""  # noqa: S608 - constants of our own

# The call and the bytes that carry it: both rows or none.
STORE_CALL = f"""
WITH stored AS (
    INSERT INTO relay_relaytransaction (
        chain_id, user_id, profile_address, key_manager_address, controller_address, digest, generation, channel,
        relay_nonce, validity, payload, signature, is_follower, relayer_id, hold_id, transaction_hash,
        gas_limit, expected_cost, real_cost, credits_before, status, terminal_status, failure_code,
        failure_detail, request_id, created_at
    ) VALUES (
        %(chain)s, %(user)s, %(profile)s, %(key_manager)s, %(controller)s, %(digest)s, %(generation)s, %(channel)s,
        %(relay_nonce)s, %(validity)s, %(payload)s, %(signature)s, %(is_follower)s, %(relayer)s, %(hold)s,
        %(transaction_hash)s, %(gas_limit)s, %(expected_cost)s, 0, %(credits_before)s, '{_STATUS.PENDING}', '', '',
        '', %(request_id)s, %(now)s
    ) RETURNING id, chain_id, relayer_id, transaction_hash, gas_limit, created_at
)
INSERT INTO relay_attempt (
    chain_id, relay_transaction_id, relayer_id, account_nonce, sequence, kind, status, transaction_hash, raw,
    gas_limit, max_fee_per_gas_wei, max_priority_fee_per_gas_wei, node_message, block_hash, created_at
)
SELECT chain_id, id, relayer_id, %(account_nonce)s, 0, '{Attempt.Kind.CALL}', '{Attempt.Status.SIGNED}',
       transaction_hash, %(raw)s, gas_limit, %(max_fee_wei)s, %(max_tip_wei)s, '', '', created_at
FROM stored
RETURNING id
"""  # noqa: S608 - constants of our own
