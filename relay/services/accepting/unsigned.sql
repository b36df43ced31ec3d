-- name: keep
-- Keeps calls that wait for a remote signer, in the order of their channels.
INSERT INTO relay_unsignedcall (
    chain_id, relayer_id, account_nonce, hold_id, key_manager_address, controller_address, relay_nonce,
    worst_cost_wei, call, taken_at
)
SELECT %(chain)s, (call ->> 'relayer_id')::bigint, (call ->> 'account_nonce')::bigint, (call ->> 'hold_id')::bigint,
       call ->> 'key_manager_address', call ->> 'controller_address', (call ->> 'relay_nonce')::numeric,
       (call ->> 'gas_limit')::numeric * (call ->> 'max_fee_per_gas_wei')::numeric
           + (call ->> 'max_extra_fee_wei')::numeric,
       call, statement_timestamp()
FROM jsonb_array_elements(%(calls)s::jsonb) AS call
ORDER BY call ->> 'key_manager_address', call ->> 'controller_address', call ->> 'relay_nonce'
RETURNING id

-- name: take_away
-- Takes away calls that wait no longer, and returns their slots.
DELETE FROM relay_unsignedcall WHERE hold_id = ANY(%(holds)s::bigint[]) RETURNING hold_id, relayer_id, account_nonce

-- name: release
-- Withdraws holds, and their loss reservations, which have the same keys. A quote stays used; it expires within a
-- minute anyway.
WITH loss AS (
    DELETE FROM relay_loss AS loss USING credits_hold AS hold
    WHERE hold.id = ANY(%(holds)s::bigint[]) AND loss.chain_id = %(chain)s AND loss.key = hold.key
      AND loss.settled_at IS NULL
    RETURNING loss.id
)
SELECT count(*), credits_withdraw_holds(%(holds)s::bigint[])::text FROM loss

-- name: give_back
-- Gives an account nonce back to its relayer, unless a later one was taken or it was mined.
UPDATE relay_relayer SET next_account_nonce = %(nonce)s
WHERE id = %(relayer)s AND next_account_nonce = %(nonce)s + 1 AND mined_account_nonce <= %(nonce)s
RETURNING id

-- name: hash_of
-- The hash of the call of a hold, if it is stored.
SELECT transaction_hash FROM relay_relaytransaction WHERE hold_id = %(hold)s

-- name: waiting
-- The number of calls that wait for a signature, and the wait of the oldest in seconds.
SELECT count(*), coalesce(extract(epoch FROM statement_timestamp() - min(taken_at)), 0)::float
FROM relay_unsignedcall WHERE chain_id = %(chain)s
