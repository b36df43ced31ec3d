-- part: columns
-- The columns of `_Signed`.
attempt.id, attempt.relay_transaction_id, attempt.relayer_id, attempt.kind, attempt.transaction_hash,
       attempt.raw, attempt.node_message, attempt.max_priority_fee_per_gas_wei, call.key_manager_address, call.controller_address, call.channel,
       call.validity, call.is_follower

-- part: waiting
-- Attempts that no node has accepted. Few wait at a time. A partial index finds them, and the primary key finds their
-- calls. The condition is on `settled_at` and not on the status: with statistics from an idle moment, PostgreSQL would
-- read every call in progress for each attempt.
FROM relay_attempt AS attempt
JOIN relay_relaytransaction AS call ON call.id = attempt.relay_transaction_id AND call.settled_at IS NULL
WHERE attempt.chain_id = %(chain)s AND attempt.status = @signed@

-- name: unsent
-- Attempts that wait for their first broadcast, of one relayer or of all.
SELECT @columns@
@waiting@
  AND (%(relayer)s::bigint IS NULL OR attempt.relayer_id = %(relayer)s::bigint)
ORDER BY attempt.relayer_id, attempt.account_nonce, attempt.sequence

-- name: relayers_with_unsent
-- The relayers of such attempts.
SELECT DISTINCT attempt.relayer_id
@waiting@
ORDER BY attempt.relayer_id

-- name: overdue
-- Attempts that were last broadcast before a given time and are not mined, or whose block disappeared. Calls are
-- listed first, for the reason of `waiting`.
WITH call AS MATERIALIZED (
    SELECT id, key_manager_address, controller_address, channel, validity, is_follower
    FROM relay_relaytransaction WHERE chain_id = %(chain)s AND status IN @in_progress@
)
SELECT @columns@ FROM call JOIN relay_attempt AS attempt ON attempt.relay_transaction_id = call.id
WHERE attempt.status = @sent@ AND (attempt.sent_at < %(before)s OR attempt.sent_at IS NULL)
ORDER BY attempt.relayer_id, attempt.account_nonce, attempt.sequence LIMIT 200

-- name: unmined
-- Attempts of one call that were broadcast and are not mined.
SELECT @columns@ FROM relay_relaytransaction AS call
JOIN relay_attempt AS attempt ON attempt.relay_transaction_id = call.id
WHERE call.id = %(transaction)s AND call.chain_id = %(chain)s AND call.settled_at IS NULL
  AND attempt.status = @sent@
ORDER BY attempt.relayer_id, attempt.account_nonce, attempt.sequence

-- name: lost_followers
-- Followers whose predecessor in the channel ended without success, or will. A repeat of a failed predecessor does not
-- count, since its account nonce is higher than the follower's.
SELECT call.id FROM relay_relaytransaction AS call
WHERE call.id = ANY(%(ids)s::bigint[]) AND call.is_follower AND NOT EXISTS (
    SELECT FROM relay_relaytransaction AS before
    WHERE before.chain_id = call.chain_id AND before.key_manager_address = call.key_manager_address
      AND before.controller_address = call.controller_address AND before.channel = call.channel
      AND before.relay_nonce = call.relay_nonce - 1 AND before.id < call.id
      AND before.status IN @active@ AND (before.terminal_status = '' OR before.status NOT IN @in_progress@)
)

-- name: mark_sent
-- Marks attempts and their calls as sent, and returns how long newly sent attempts had waited. The update is
-- conditional, so it never overwrites a status from the tracker or a newer attempt. The count is read first, so calls
-- are locked before attempts, as everywhere.
WITH submitted AS (
    UPDATE relay_relaytransaction SET status = @submitted@
    WHERE id = ANY(%(transactions)s::bigint[]) AND status = @pending@
    RETURNING id
)
UPDATE relay_attempt AS attempt
SET status = @sent@, sent_at = %(now)s, first_sent_at = coalesce(first_sent_at, %(now)s)
FROM (SELECT count(*) FROM submitted) AS done
WHERE attempt.id = ANY(%(attempts)s::bigint[]) AND attempt.status IN (@signed@, @sent@)
RETURNING CASE WHEN attempt.first_sent_at = %(now)s
          THEN extract(epoch FROM attempt.first_sent_at - attempt.created_at)::float END
