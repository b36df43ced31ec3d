-- name: first_unexplained
-- For each relayer: the lowest account nonce since its first attempt that the chain has used and that neither a mined
-- attempt nor a gap filler of ours has. A relayer without attempts counts if the chain is, or was, ahead of it. The
-- block is that of the newest attempt before that account nonce, else of the newest one mined before that time.
SELECT min(block.number), count(*), count(block.number)
FROM unnest(%(relayers)s::bigint[], %(counts)s::bigint[]) AS account (relayer_id, used)
JOIN relay_relayer AS relayer ON relayer.id = account.relayer_id
LEFT JOIN LATERAL (
    SELECT account_nonce, created_at FROM relay_attempt AS attempt WHERE attempt.relayer_id = account.relayer_id
    ORDER BY account_nonce LIMIT 1
) AS first ON true
CROSS JOIN LATERAL (
    SELECT used_nonce AS account_nonce FROM generate_series(coalesce(first.account_nonce, CASE
        WHEN relayer.quarantined_at IS NOT NULL OR relayer.next_account_nonce < account.used THEN account.used - 1
    END), account.used - 1) AS used_nonce
    WHERE NOT EXISTS (
        SELECT FROM relay_attempt AS attempt
        WHERE attempt.relayer_id = account.relayer_id AND attempt.account_nonce = used_nonce
          AND attempt.status = @mined@
    ) AND NOT EXISTS (
        SELECT FROM relay_gapfiller AS filler
        WHERE filler.relayer_id = account.relayer_id AND filler.account_nonce = used_nonce
    )
    ORDER BY used_nonce LIMIT 1
) AS lowest
CROSS JOIN LATERAL (
    SELECT coalesce((
        SELECT block_number FROM relay_attempt AS attempt
        WHERE attempt.relayer_id = account.relayer_id AND attempt.account_nonce < lowest.account_nonce
          AND attempt.status = @mined@
        ORDER BY account_nonce DESC LIMIT 1
    ), (
        SELECT max(block_number) FROM relay_attempt AS attempt
        WHERE attempt.mined_at < coalesce(first.created_at, relayer.quarantined_at, now())
    )) AS number
) AS block
