-- name: figures
-- The profiles that a sponsor requested since a time: their numbers, what they have cost, and how many have acted since. A
-- profile on several chains is one; its deployments in progress and failed ones count each.
WITH requested AS (
    SELECT creation.kind, creation.user_id, coalesce(call.status, CASE WHEN creation.hold_id IS NULL THEN @executed_externally@ ELSE @pending@ END) AS status,
           coalesce(paid.captured_amount, 0) AS credits, coalesce(gift.captured_amount, 0) AS first_credits,
           EXISTS (
               SELECT FROM relay_relaytransaction AS act
               WHERE act.user_id = creation.user_id AND act.status = @success@ AND NOT act.deploys_profile
           ) AS has_acted
    FROM relay_profilecreation AS creation
    LEFT JOIN relay_relaytransaction AS call ON call.hold_id = creation.hold_id
    LEFT JOIN sponsors_sponsoredcall AS sponsored ON sponsored.hold_id = creation.hold_id
    LEFT JOIN sponsors_policyversion AS terms ON terms.id = sponsored.version_id
    LEFT JOIN credits_hold AS paid ON paid.id = sponsored.sponsor_hold_id AND terms.purpose <> 'welcome'
    LEFT JOIN sponsors_firstcredits AS given ON given.call_id = sponsored.id
    LEFT JOIN credits_hold AS gift ON gift.id = given.hold_id AND terms.purpose <> 'welcome'
    WHERE creation.sponsor_id = %(sponsor)s AND creation.created_at >= %(since)s
)
SELECT count(DISTINCT user_id) FILTER (WHERE kind = 'created' AND status IN (@success@, @executed_externally@)),
       count(*) FILTER (WHERE kind = 'registered'),
       count(*) FILTER (WHERE status IN @in_progress@),
       count(*) FILTER (WHERE status IN (@failed@, @expired@, @cancelled@)),
       coalesce(sum(credits), 0)::bigint, coalesce(sum(first_credits), 0)::bigint,
       count(DISTINCT user_id) FILTER (WHERE has_acted)
FROM requested
