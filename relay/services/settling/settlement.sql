-- name: settle_calls
-- Locks the calls in row order and writes the outcome of those in progress; returns a `_Settled` for each. First credits
-- are due when a profile exists whose policy gives some, unless it has had them or its account is being deleted.
WITH outcome AS (
    SELECT * FROM jsonb_to_recordset(%(outcomes)s::jsonb)
        AS outcome (id bigint, status text, cost bigint, code text, detail text, hash text)
), due AS (
    SELECT call.id
    FROM relay_relaytransaction AS call
    WHERE call.id = ANY(ARRAY(SELECT id FROM outcome)) AND call.status IN @in_progress@
    ORDER BY call.id FOR NO KEY UPDATE
), settled AS (
    UPDATE relay_relaytransaction AS call
    SET status = outcome.status, real_cost = outcome.cost, settled_at = %(now)s, terminal_status = '',
        failure_code = outcome.code, failure_detail = outcome.detail,
        transaction_hash = coalesce(outcome.hash, call.transaction_hash)
    FROM due JOIN outcome USING (id)
    WHERE call.id = due.id
    RETURNING call.hold_id, call.user_id, outcome.cost, outcome.status,
        extract(epoch FROM call.settled_at - call.created_at)::float AS seconds
)
SELECT settled.hold_id, settled.user_id, settled.cost, settled.status, sponsored.sponsor_hold_id, version.share_percent,
       settled.seconds, gift.id, version.first_days, version.first_chain_ids,
       CASE WHEN settled.status IN (@success@, @executed_externally@) AND given.digest IS NOT NULL AND person.is_active
            THEN gift.amount ELSE 0 END
FROM settled
LEFT JOIN sponsors_sponsoredcall AS sponsored ON sponsored.hold_id = settled.hold_id
LEFT JOIN sponsors_policyversion AS version ON version.id = sponsored.version_id
LEFT JOIN sponsors_firstcredits AS given ON given.call_id = sponsored.id
LEFT JOIN credits_hold AS gift ON gift.id = given.hold_id
LEFT JOIN users_user AS person ON given.id IS NOT NULL AND person.id = settled.user_id
