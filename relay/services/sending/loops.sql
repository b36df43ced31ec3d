-- name: failing
-- The loops that have not succeeded lately, or never, and whether they run.
SELECT wanted.name, coalesce(ended_at > statement_timestamp() - %(seconds)s * interval '1 second', false)
FROM unnest(%(loops)s::text[]) AS wanted (name)
LEFT JOIN relay_workerloop AS loop ON loop.name = wanted.name AND chain_id = %(chain)s
WHERE coalesce(succeeded_at < statement_timestamp() - %(seconds)s * interval '1 second', true)
ORDER BY wanted.name

-- name: note
-- Notes when a loop ended a round, succeeded or moved something.
INSERT INTO relay_workerloop AS noted (chain_id, name) VALUES (%(chain)s, %(loop)s)
ON CONFLICT (chain_id, name) DO UPDATE
SET ended_at = CASE WHEN %(ended)s THEN statement_timestamp() ELSE noted.ended_at END,
    succeeded_at = CASE WHEN %(succeeded)s THEN statement_timestamp() ELSE noted.succeeded_at END,
    moved_at = CASE WHEN %(moved)s THEN statement_timestamp() ELSE noted.moved_at END
RETURNING id

-- name: stalls
-- The loops that have had something to do for too long, with the seconds since it was due; none on a standby.
WITH due (loop, since) AS (
    SELECT 'broadcasting', min(attempt.created_at)
    FROM relay_attempt AS attempt JOIN relay_relaytransaction AS call ON call.id = attempt.relay_transaction_id
    WHERE attempt.chain_id = %(chain)s AND attempt.status = @signed@
      AND attempt.node_message = '' AND call.status IN @in_progress@
    UNION ALL
    SELECT 'tracking', min(attempt.mined_at) + %(confirming)s * interval '1 second'
    FROM relay_relaytransaction AS call JOIN relay_attempt AS attempt ON attempt.relay_transaction_id = call.id
    WHERE attempt.chain_id = %(chain)s AND attempt.status = @mined@
      AND call.status IN @in_progress@
)
SELECT due.loop, extract(epoch FROM statement_timestamp() - due.since)::float
FROM due LEFT JOIN relay_workerloop AS noted ON noted.name = due.loop AND noted.chain_id = %(chain)s
WHERE due.since IS NOT NULL AND current_setting('transaction_read_only') = 'off'
  AND greatest(due.since, noted.moved_at) < statement_timestamp() - %(patience)s * interval '1 second'
