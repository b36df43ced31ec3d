-- name: counts
-- The effects of reorganisations since a given time, and the final block; 0 before the chain was read for the first
-- time.
SELECT (SELECT count(*) FROM relay_reversedsettlement WHERE reversed_at >= %(since)s),
       (SELECT count(*) FROM relay_gapfiller WHERE created_at >= %(since)s),
       coalesce(final.number, 0), final.replaced_at IS NOT NULL
FROM (SELECT) AS always LEFT JOIN relay_finalblock AS final ON final.chain_id = %(chain)s

-- name: watch
-- The final block, with each block above it in which a settled call was mined.
SELECT final.number, final.block_hash, final.replaced_at IS NOT NULL, settled.block_number, settled.block_hash
FROM relay_finalblock AS final
LEFT JOIN LATERAL (
    SELECT DISTINCT attempt.block_number, attempt.block_hash
    FROM relay_attempt AS attempt
    JOIN relay_relaytransaction AS call ON call.id = attempt.relay_transaction_id
    WHERE attempt.chain_id = final.chain_id AND attempt.block_number > final.number
      AND call.status NOT IN @in_progress@
) AS settled ON true
WHERE final.chain_id = %(chain)s

-- name: move_final_block
-- Moves the final block forward. A worker with an older view of the chain does not move it back.
INSERT INTO relay_finalblock AS final (chain_id, number, block_hash) VALUES (%(chain)s, %(number)s, %(hash)s)
ON CONFLICT (chain_id) DO UPDATE SET number = excluded.number, block_hash = excluded.block_hash
WHERE final.number < excluded.number AND final.replaced_at IS NULL
RETURNING id

-- name: settled_calls
-- The settled calls that were mined in blocks that have vanished.
SELECT DISTINCT call.id
FROM unnest(%(numbers)s::bigint[], %(hashes)s::text[]) AS vanished (number, hash)
JOIN relay_attempt AS attempt ON attempt.block_number = vanished.number AND attempt.block_hash = vanished.hash
JOIN relay_relaytransaction AS call ON call.id = attempt.relay_transaction_id
WHERE attempt.chain_id = %(chain)s AND call.status NOT IN @in_progress@
ORDER BY call.id DESC
