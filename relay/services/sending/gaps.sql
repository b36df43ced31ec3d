-- name: gaps
-- The account nonces of relayers that no transaction uses. Only nonces within the in-flight limit matter: nodes keep
-- no more pending transactions of one account.
SELECT relayer.id, relayer.address, taken.account_nonce
FROM relay_relayer AS relayer
CROSS JOIN LATERAL generate_series(
    relayer.mined_account_nonce, least(relayer.next_account_nonce, relayer.mined_account_nonce + %(most)s) - 1
) AS taken (account_nonce)
WHERE relayer.chain_id = %(chain)s AND relayer.address = ANY(%(addresses)s)
  -- A relayer that was locked when the others were read has used account nonces that its row does not know.
  AND relayer.synced_at + %(block_seconds)s * interval '1 second' >= (
    SELECT max(synced_at) FROM relay_relayer WHERE chain_id = %(chain)s
  )
  AND NOT EXISTS (
    SELECT FROM relay_gapfiller AS filler
    WHERE filler.relayer_id = relayer.id AND filler.account_nonce = taken.account_nonce
  )
  AND NOT EXISTS (
    SELECT FROM relay_unsignedcall AS unsigned
    WHERE unsigned.relayer_id = relayer.id AND unsigned.account_nonce = taken.account_nonce
  )
  -- No EXISTS here: PostgreSQL expects thousands of account nonces where there are few, and would read all attempts.
  AND (
    SELECT true FROM relay_attempt AS attempt
    JOIN relay_relaytransaction AS call ON call.id = attempt.relay_transaction_id
    WHERE attempt.relayer_id = relayer.id AND attempt.account_nonce = taken.account_nonce
      AND (call.status IN @in_progress@ OR attempt.block_number > %(head)s)
    LIMIT 1
  ) IS NULL
ORDER BY relayer.id, taken.account_nonce
