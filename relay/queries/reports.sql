-- part: columns
-- What `_report_of` reads of a call, its sponsor, and its ledger entry.
call.id, call.status, call.profile_address, call.failure_code, call.failure_detail,
call.expected_cost, call.credits_before, call.chain_id,
(SELECT sponsor.slug FROM sponsors_sponsoredcall AS sponsored
 JOIN sponsors_policyversion AS version ON version.id = sponsored.version_id
 JOIN sponsors_policy AS policy ON policy.id = version.policy_id
 JOIN sponsors_sponsor AS sponsor ON sponsor.id = policy.sponsor_id
 WHERE sponsored.hold_id = call.hold_id),
entry.amount, entry.balance_before, entry.balance_after

-- name: report
-- The state of the session, and the user's call that has an attempt with this hash; NULLs if there is none. The index
-- begins with the chain, and each chain that has ever had a call has relayers.
SELECT @session_state@, @columns@
FROM (SELECT) AS always
LEFT JOIN (relay_attempt AS attempt JOIN relay_relaytransaction AS call ON call.id = attempt.relay_transaction_id)
       ON attempt.chain_id = ANY (ARRAY(SELECT DISTINCT chain_id FROM relay_relayer)) AND attempt.transaction_hash = %(hash)s AND call.user_id = %(user)s
LEFT JOIN credits_hold AS hold ON hold.id = call.hold_id
LEFT JOIN credits_entry AS entry ON entry.id = hold.entry_id

-- name: changed
-- The calls whose status is no longer the one that is shown.
SELECT shown.status, @columns@
FROM unnest(%(ids)s::bigint[], %(statuses)s::text[]) AS shown (id, status)
JOIN relay_relaytransaction AS call ON call.id = shown.id AND call.status <> shown.status
LEFT JOIN credits_hold AS hold ON hold.id = call.hold_id
LEFT JOIN credits_entry AS entry ON entry.id = hold.entry_id

-- name: typical_cost
-- The median cost in credits of the successful calls among the newest ones of all users.
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY real_cost)::float
FROM (SELECT real_cost, status FROM relay_relaytransaction ORDER BY id DESC LIMIT %(calls)s) AS newest
WHERE status = @success@ AND real_cost > 0

-- name: spent_by_day
-- The credits that a user's calls cost the user, by UTC day, without the sponsors' parts.
SELECT (settled_at AT TIME ZONE 'UTC')::date AS day, sum(real_cost)::bigint
FROM (SELECT settled_at, real_cost - coalesce((
          SELECT captured_amount FROM sponsors_sponsoredcall AS sponsored
          JOIN credits_hold AS of_sponsor ON of_sponsor.id = sponsored.sponsor_hold_id
          WHERE sponsored.hold_id = call.hold_id
      ), 0) AS real_cost
      FROM relay_relaytransaction AS call
      WHERE user_id = %(user)s ORDER BY id DESC LIMIT %(calls)s) AS newest
WHERE real_cost > 0 AND (settled_at AT TIME ZONE 'UTC')::date >= %(since)s
GROUP BY day ORDER BY day
