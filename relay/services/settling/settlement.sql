-- name: settle_calls
-- Locks the calls in row order and writes the outcome of those in progress; returns a `_Settled` for each.
WITH outcome AS (
    SELECT * FROM jsonb_to_recordset(%(outcomes)s::jsonb)
        AS outcome (id bigint, status text, cost bigint, code text, detail text, hash text)
), due AS (
    SELECT call.id
    FROM relay_relaytransaction AS call
    WHERE call.id = ANY(ARRAY(SELECT id FROM outcome)) AND call.status IN @in_progress@
    ORDER BY call.id FOR NO KEY UPDATE
)
UPDATE relay_relaytransaction AS call
SET status = outcome.status, real_cost = outcome.cost, settled_at = %(now)s, terminal_status = '',
    failure_code = outcome.code, failure_detail = outcome.detail,
    transaction_hash = coalesce(outcome.hash, call.transaction_hash)
FROM due JOIN outcome USING (id)
WHERE call.id = due.id
RETURNING call.hold_id, outcome.cost, outcome.status,
    (SELECT sponsor_hold_id FROM sponsors_sponsoredcall WHERE hold_id = call.hold_id),
    (SELECT share_percent FROM sponsors_sponsoredcall AS sponsored
     JOIN sponsors_policyversion AS version ON version.id = sponsored.version_id WHERE hold_id = call.hold_id),
    extract(epoch FROM call.settled_at - call.created_at)::float
