-- name: offers
-- The policies that may pay for calls, with their terms and usage: those of a sponsor, or the version that was quoted.
SELECT call.place, sponsor.slug, sponsor.is_frozen, account.balance - account.held,
       coalesce(person.date_joined, call.now),
       (to_jsonb(terms) - 'listed') || jsonb_build_object('policy', policy.name), call.profile = ANY(terms.listed),
       (SELECT jsonb_object_agg(usage.scope, jsonb_build_array(usage.credits, usage.calls))
        FROM sponsors_parts_of(terms.id, call.user_id, call.now) AS part
        JOIN sponsors_usage AS usage ON usage.policy_id = part.policy_id AND usage.scope = part.scope
             AND usage.user_number = part.user_number AND usage.begins = part.begins),
       (SELECT jsonb_agg(jsonb_build_array(budget.scope, budget.ends, budget.most_credits, coalesce(used.credits, 0)))
        FROM sponsors_budget_of(sponsor.id, call.now) AS budget
        LEFT JOIN sponsors_budgetuse AS used
          ON used.sponsor_id = sponsor.id AND used.scope = budget.scope AND used.begins = budget.begins)
FROM jsonb_to_recordset(%(calls)s::jsonb) AS call (
    place integer, slug text, version_id bigint, user_id bigint, profile text, now timestamptz
)
LEFT JOIN sponsors_policyversion AS quoted ON quoted.id = call.version_id
LEFT JOIN sponsors_policy AS of_quote ON of_quote.id = quoted.policy_id
JOIN sponsors_sponsor AS sponsor
  ON CASE WHEN quoted.id IS NULL THEN sponsor.slug = call.slug ELSE sponsor.id = of_quote.sponsor_id END
JOIN credits_account AS account ON account.sponsor_id = sponsor.id
LEFT JOIN users_user AS person ON person.id = call.user_id
LEFT JOIN sponsors_policy AS policy
       ON policy.sponsor_id = sponsor.id AND policy.is_enabled AND (quoted.id IS NULL OR policy.id = of_quote.id)
LEFT JOIN LATERAL (
    SELECT * FROM sponsors_policyversion AS each
    WHERE each.policy_id = policy.id AND (quoted.id IS NULL OR each.id = quoted.id)
    ORDER BY each.number DESC LIMIT 1
) AS terms ON true
ORDER BY call.place, policy.position, policy.id
