-- name: seconds_to_inclusion
-- The median and the 95th percentile of the seconds between a call's acceptance and its inclusion in a block.
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds), percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds)
FROM (
    SELECT extract(epoch FROM attempt.mined_at - call.created_at)::float AS seconds
    FROM relay_relaytransaction AS call JOIN relay_attempt AS attempt ON attempt.relay_transaction_id = call.id
    WHERE call.created_at >= %(since)s AND attempt.created_at >= %(since)s
        AND attempt.kind = %(kind)s AND attempt.mined_at IS NOT NULL
) AS inclusion
