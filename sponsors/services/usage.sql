-- name: lock
-- Locks the accounts of all sponsors, which are the locks of the usage of their policies.
SELECT id FROM credits_account WHERE sponsor_id IS NOT NULL ORDER BY id FOR NO KEY UPDATE

-- name: correct
-- Makes the usage of policies what their calls count, and returns the corrected rows.
WITH counted AS (
    SELECT part.policy_id, part.scope, part.user_number, part.begins, sum(call.counted_credits)::bigint AS credits,
           sum(call.counted_calls)::bigint AS calls
    FROM sponsors_sponsoredcall AS call,
         LATERAL sponsors_parts_of(call.version_id, call.user_id, call.accepted_at) AS part
    GROUP BY 1, 2, 3, 4
)
INSERT INTO sponsors_usage AS usage (policy_id, scope, user_number, begins, credits, calls)
SELECT coalesce(counted.policy_id, stored.policy_id), coalesce(counted.scope, stored.scope),
       coalesce(counted.user_number, stored.user_number), coalesce(counted.begins, stored.begins),
       coalesce(counted.credits, 0), coalesce(counted.calls, 0)
FROM counted FULL JOIN sponsors_usage AS stored
    ON (stored.policy_id, stored.scope, stored.user_number, stored.begins)
     = (counted.policy_id, counted.scope, counted.user_number, counted.begins)
WHERE (stored.credits, stored.calls) IS DISTINCT FROM (coalesce(counted.credits, 0), coalesce(counted.calls, 0))
ON CONFLICT (policy_id, scope, user_number, begins) DO UPDATE SET credits = excluded.credits, calls = excluded.calls
RETURNING id

-- name: correct_budgets
-- Forgets what budgets count, in the same transaction: the next call of each sponsor counts its calls again.
DELETE FROM sponsors_budgetuse AS used WHERE used.credits <> (
    SELECT coalesce(sum(call.counted_credits), 0) FROM sponsors_policy AS policy
    JOIN sponsors_policyversion AS version ON version.policy_id = policy.id
    JOIN sponsors_sponsoredcall AS call ON call.version_id = version.id
    JOIN LATERAL sponsors_periods_of(call.accepted_at) AS period
      ON period.scope = used.scope AND period.begins = used.begins
    WHERE policy.sponsor_id = used.sponsor_id
) RETURNING id
