-- name: counts
-- A snapshot for the gauges, which reads only calls in progress: their numbers, and ages in seconds of the oldest
-- accepted, signed and sent.
WITH call AS MATERIALIZED (
    SELECT id, status, created_at FROM relay_relaytransaction WHERE chain_id = %(chain)s AND status IN @in_progress@
), attempt AS MATERIALIZED (
    SELECT attempt.relay_transaction_id AS call_id, attempt.status, attempt.created_at, attempt.first_sent_at
    FROM call JOIN relay_attempt AS attempt ON attempt.relay_transaction_id = call.id
), oldest AS (
    SELECT (SELECT min(created_at) FROM call) AS accepted_at,
           (SELECT min(created_at) FROM attempt WHERE status = @signed@) AS signed_at,
           (SELECT min(first_sent_at) FROM attempt
            WHERE call_id NOT IN (SELECT call_id FROM attempt WHERE status = @mined@)) AS sent_at
)
SELECT (SELECT count(*) FROM call WHERE status = @pending@),
       (SELECT count(*) FROM call WHERE status = @submitted@),
       coalesce(greatest(0, extract(epoch FROM statement_timestamp() - accepted_at)), 0)::float,
       coalesce(greatest(0, extract(epoch FROM statement_timestamp() - signed_at)), 0)::float,
       coalesce(greatest(0, extract(epoch FROM statement_timestamp() - sent_at)), 0)::float
FROM oldest

-- name: top_ups
-- The wei that the treasury has sent since a given time, and the age in seconds of the transfer in flight.
SELECT (SELECT coalesce(sum(amount_wei), 0) FROM relay_topup
        WHERE chain_id = %(chain)s AND created_at >= %(since)s
          AND status IN ('sent', 'mined')),
       (SELECT coalesce(greatest(0, extract(epoch FROM statement_timestamp() - min(first.created_at))), 0)::float
        FROM relay_topup AS sent JOIN relay_topup AS first USING (chain_id, treasury_address, account_nonce)
        WHERE sent.chain_id = %(chain)s AND sent.status = 'sent')
