-- name: catch_up
-- Adopts account nonces that the chain knows and the row has lost. Reads the row under its lock before the update, so
-- that the lost account nonces can be logged.
WITH before AS (
    SELECT id, next_account_nonce, least(%(pending)s, mined_account_nonce + %(cap)s) AS chain_nonce
    FROM relay_relayer WHERE id = %(id)s FOR NO KEY UPDATE
)
UPDATE relay_relayer AS relayer
SET next_account_nonce = greatest(before.next_account_nonce, before.chain_nonce),
    is_active = is_active AND before.next_account_nonce >= before.chain_nonce,
    quarantined_at = CASE WHEN before.next_account_nonce < before.chain_nonce THEN %(now)s ELSE quarantined_at END,
    timeline = @timeline@
FROM before WHERE relayer.id = before.id
RETURNING before.next_account_nonce, relayer.next_account_nonce

-- name: update_relayers(locked)
-- Stores the relayers' accounts as of the newest block. If the chain is ahead of a row, its next account nonce jumps
-- forward and the relayer is quarantined. A relayer whose account has code is quarantined as well. With SKIP LOCKED,
-- rows that a request has locked are left out and not returned: waiting for one would keep the others locked against
-- all requests meanwhile.
WITH free AS (
    SELECT id, next_account_nonce AS before, has_code AND quarantined_at IS NOT NULL AS is_known FROM relay_relayer
    WHERE id = ANY(%(ids)s::bigint[]) FOR NO KEY UPDATE @locked@
)
UPDATE relay_relayer AS relayer
SET is_active = is_active AND next_account_nonce >= account.nonce AND NOT account.has_code,
    quarantined_at = CASE WHEN next_account_nonce < account.nonce THEN %(now)s
                          WHEN account.has_code AND retired_at IS NULL THEN coalesce(quarantined_at, %(now)s)
                          ELSE quarantined_at END,
    has_code = account.has_code,
    mined_account_nonce = greatest(account.nonce, least(mined_account_nonce, account.highest_nonce)),
    next_account_nonce = greatest(next_account_nonce, account.nonce),
    balance_wei = account.balance, synced_at = %(now)s
FROM unnest(%(ids)s::bigint[], %(nonces)s::bigint[], %(highest)s::bigint[], %(balances)s::numeric[],
            %(codes)s::boolean[])
    AS account (id, nonce, highest_nonce, balance, has_code)
JOIN free USING (id)
WHERE relayer.id = account.id
RETURNING relayer.id, relayer.address, account.nonce - free.before, account.has_code AND NOT free.is_known

-- name: timeline
-- The timeline on which the database runs; each fail-over of PostgreSQL begins another.
SELECT @timeline@
