-- name: caused
-- The entries of new profiles whose first credits left their sponsors' accounts, and those that were taken back when the
-- hold was reopened. The sponsors' own entries are those of the holds.
SELECT side.*
FROM sponsors_firstcredits AS given
JOIN sponsors_sponsoredcall AS call ON call.id = given.call_id
JOIN credits_account AS account ON account.user_id = call.user_id
JOIN credits_hold AS hold ON hold.id = given.hold_id
JOIN credits_entry AS charge ON charge.account_id = hold.account_id AND charge.source = 'FIRST_CREDITS'
    AND split_part(charge.key, ':', 2) = hold.id::text
CROSS JOIN LATERAL (VALUES
    ('FIRST_CREDITS', 'first:' || charge.key, account.id, -charge.amount),
    ('RELAY_REVERSAL', 'reversal:first:' || charge.key, account.id, charge.amount)
) AS side (source, key, account_id, amount)
WHERE side.source = 'FIRST_CREDITS' OR charge.id IS DISTINCT FROM hold.entry_id

-- name: rules
-- The rules of sponsors' terms, usage, vouchers and members that a row breaks.
WITH version AS (
    SELECT id, concat_ws(' ', 'policy', policy_id, profiles, share_percent, call_credits) AS terms,
           concat_ws('/', coalesce(user_day_credits::text, '-'), coalesce(user_credits::text, '-'),
                     coalesce(user_calls::text, '-'), coalesce(window_seconds::text, '-'),
                     coalesce(window_credits::text, '-'), coalesce(campaign_credits::text, '-'))
               || CASE WHEN (purpose, window_calls, campaign_calls, origin_calls, chain_id) IS DISTINCT FROM ('calls', NULL, NULL, NULL, NULL)
                      THEN concat_ws('/', ' ' || purpose, coalesce(window_calls::text, '-'), coalesce(campaign_calls::text, '-'),
                                     coalesce(origin_calls::text, '-'), coalesce(chain_id::text, '-'))
                      ELSE '' END
               || coalesce(' first ' || first_credits || '/' || first_days || coalesce('/' || nullif(array_to_string(first_chain_ids, ','), ''), ''), '') AS limits,
           created_by_id
    FROM sponsors_policyversion
), written AS (
    SELECT type.model, log.object_id, log.user_id, substring(log.change_message FROM '"(?:terms|address)": \["", "([^"]*)"\]') AS value
    FROM django_admin_log AS log JOIN django_content_type AS type ON type.id = log.content_type_id
    WHERE type.app_label = 'sponsors' AND log.change_message ~ '"action": "(write terms|add a signer)",'
), budgeted AS (
    SELECT DISTINCT ON (approval.object_id) approval.object_id, approval.payload ->> 'budget' AS budget
    FROM @carried_out@ AS approval WHERE approval.kind = 'set_sponsor_budget'
    ORDER BY approval.object_id, approval.decided_at DESC, approval.id DESC
), opened AS (
    SELECT log.object_id, log.user_id, substring(log.change_message FROM '"budget": \["", "([0-9/]*)"\]') AS budget
    FROM django_admin_log AS log JOIN django_content_type AS type ON type.id = log.content_type_id
    WHERE type.app_label = 'sponsors' AND type.model = 'sponsor' AND log.change_message LIKE '%"action": "open a sponsor",%'
), approved AS (
    SELECT kind, made_id, payload -> 'values' AS terms FROM @carried_out@ AS approval
    WHERE kind IN ('add_policy_version', 'add_voucher_signer', 'add_verifier')
), counted AS (
    SELECT part.policy_id, part.scope, part.user_number, part.begins, sum(call.counted_credits) AS credits,
           sum(call.counted_calls) AS calls
    FROM sponsors_sponsoredcall AS call,
         LATERAL sponsors_parts_of(call.version_id, call.user_id, call.accepted_at) AS part
    GROUP BY 1, 2, 3, 4
), logged AS (
    SELECT id, object_id, change_message FROM django_admin_log
    WHERE content_type_id = (SELECT id FROM django_content_type WHERE app_label = 'sponsors' AND model = 'sponsor')
      AND (change_message LIKE '%"role of person %' OR change_message LIKE '%"action": "put_member",%')
), switched AS (
    SELECT DISTINCT ON (model, object_id) model, object_id, change_message ~ '"action": "(freeze|switch_off)",' AS is_off
    FROM django_admin_log AS log JOIN django_content_type AS type ON type.id = log.content_type_id
    WHERE app_label = 'sponsors' AND change_message ~ '"action": "(freeze|thaw|switch_off|switch_on)",'
    ORDER BY model, object_id, log.id DESC
)
SELECT 'terms of a policy were approved', version.terms || ' ' || version.limits,
       coalesce(approval.terms || ' ' || approval.limits, 'nothing'),
       jsonb_build_object('policy version', version.id::text)
FROM version LEFT JOIN (
    SELECT made_id,
           concat_ws(' ', 'policy', terms ->> 'policy', coalesce(terms ->> 'profiles', 'all'),
                     coalesce(terms ->> 'share_percent', '100'), terms ->> 'call_credits') AS terms,
           concat_ws('/', coalesce(terms ->> 'user_day_credits', '-'), coalesce(terms ->> 'user_credits', '-'),
                     coalesce(terms ->> 'user_calls', '-'), coalesce(terms ->> 'window_seconds', '-'),
                     coalesce(terms ->> 'window_credits', '-'), coalesce(terms ->> 'campaign_credits', '-'))
               || CASE WHEN (coalesce(terms ->> 'purpose', 'calls'), terms ->> 'window_calls', terms ->> 'campaign_calls',
                            terms ->> 'origin_calls', terms ->> 'chain_id') IS DISTINCT FROM ('calls', NULL, NULL, NULL, NULL)
                      THEN concat_ws('/', ' ' || coalesce(terms ->> 'purpose', 'calls'),
                                     coalesce(terms ->> 'window_calls', '-'), coalesce(terms ->> 'campaign_calls', '-'),
                                     coalesce(terms ->> 'origin_calls', '-'), coalesce(terms ->> 'chain_id', '-'))
                      ELSE '' END
               || coalesce(' first ' || (terms ->> 'first_credits') || '/' || (terms ->> 'first_days')
                           || coalesce('/' || nullif(translate(terms ->> 'first_chain_ids', '[] ', ''), ''), ''), '') AS limits
    FROM approved WHERE kind = 'add_policy_version'
) AS approval ON approval.made_id = version.id::text
WHERE version.created_by_id IS NULL
  AND (version.terms, version.limits) IS DISTINCT FROM (approval.terms, approval.limits)
UNION ALL
SELECT 'terms of an owner are those in the audit log', version.terms || ' ' || version.limits,
       coalesce(written.value, 'nothing'), jsonb_build_object('policy version', version.id::text)
FROM version LEFT JOIN written
    ON written.model = 'policyversion' AND written.object_id = version.id::text AND written.user_id = version.created_by_id
WHERE version.created_by_id IS NOT NULL AND version.terms || ' ' || version.limits IS DISTINCT FROM written.value
UNION ALL
SELECT 'the budget of a sponsor is the approved one, or that of its opening',
       coalesce(sponsor.day_credits || '/' || sponsor.month_credits, '-'),
       coalesce(budgeted.budget, opened.budget, '-'), jsonb_build_object('sponsor', sponsor.id::text)
FROM sponsors_sponsor AS sponsor
LEFT JOIN budgeted ON budgeted.object_id = sponsor.id::text
LEFT JOIN opened ON opened.object_id = sponsor.id::text AND opened.user_id = sponsor.opened_by_id
WHERE coalesce(sponsor.day_credits || '/' || sponsor.month_credits, '-')
    <> coalesce(budgeted.budget, opened.budget, '-')
UNION ALL
SELECT 'a voucher signer was approved', signer.address, coalesce(approval.terms ->> 'address', 'nothing'),
       jsonb_build_object('voucher signer', signer.id::text)
FROM sponsors_vouchersigner AS signer
LEFT JOIN approved AS approval ON approval.kind = 'add_voucher_signer' AND approval.made_id = signer.id::text
WHERE signer.created_by_id IS NULL AND (lower(signer.address), signer.sponsor_id::text)
    IS DISTINCT FROM (lower(approval.terms ->> 'address'), approval.terms ->> 'sponsor')
UNION ALL
SELECT 'a voucher signer of an owner is in the audit log', signer.address, coalesce(written.value, 'nothing'),
       jsonb_build_object('voucher signer', signer.id::text)
FROM sponsors_vouchersigner AS signer LEFT JOIN written
    ON written.model = 'vouchersigner' AND written.object_id = signer.id::text AND written.user_id = signer.created_by_id
WHERE signer.created_by_id IS NOT NULL AND signer.address IS DISTINCT FROM written.value
UNION ALL
SELECT 'a verifier was approved', verifier.url, coalesce(approval.terms ->> 'url', 'nothing'),
       jsonb_build_object('verifier', verifier.id::text)
FROM sponsors_verifier AS verifier
LEFT JOIN approved AS approval ON approval.kind = 'add_verifier' AND approval.made_id = verifier.id::text
WHERE (verifier.url, verifier.sponsor_id::text)
    IS DISTINCT FROM (approval.terms ->> 'url', approval.terms ->> 'sponsor')
UNION ALL
SELECT 'usage is what the calls of the policy count', coalesce(usage.credits || ' in ' || usage.calls, 'nothing'),
       coalesce(counted.credits || ' in ' || counted.calls, 'nothing'),
       jsonb_build_object(
           'policy', coalesce(usage.policy_id, counted.policy_id)::text,
           'usage', coalesce(usage.scope, counted.scope) || ' ' || coalesce(usage.user_number, counted.user_number)
               || ' ' || coalesce(usage.begins, counted.begins)
       )
FROM sponsors_usage AS usage FULL JOIN counted
    ON (usage.policy_id, usage.scope, usage.user_number, usage.begins)
     = (counted.policy_id, counted.scope, counted.user_number, counted.begins)
WHERE coalesce(usage.credits, 0) <> coalesce(counted.credits, 0)
   OR coalesce(usage.calls, 0) <> coalesce(counted.calls, 0)
UNION ALL
SELECT 'budget use is what the calls of the sponsor count', used.credits::text, counted.credits::text,
       jsonb_build_object('sponsor', used.sponsor_id::text, 'period', used.scope || ' ' || used.begins)
FROM sponsors_budgetuse AS used CROSS JOIN LATERAL (
    SELECT coalesce(sum(call.counted_credits), 0) AS credits FROM sponsors_policy AS policy
    JOIN sponsors_policyversion AS terms ON terms.policy_id = policy.id
    JOIN sponsors_sponsoredcall AS call ON call.version_id = terms.id
    JOIN LATERAL sponsors_periods_of(call.accepted_at) AS period
      ON period.scope = used.scope AND period.begins = used.begins
    WHERE policy.sponsor_id = used.sponsor_id
) AS counted
WHERE used.credits <> counted.credits
UNION ALL
SELECT 'a call counts what its hold takes', call.counted_credits || ' in ' || call.counted_calls,
       part.credits || ' in ' || part.calls, jsonb_build_object('sponsored call', call.id::text)
FROM sponsors_sponsoredcall AS call
CROSS JOIN LATERAL (
    SELECT sum(CASE hold.status WHEN 'HELD' THEN hold.amount WHEN 'CAPTURED' THEN hold.captured_amount ELSE 0 END) AS credits,
           max(CASE WHEN hold.status = 'RELEASED' THEN 0 ELSE 1 END) AS calls
    FROM credits_hold AS hold
    WHERE hold.id = call.sponsor_hold_id
       OR hold.id = (SELECT hold_id FROM sponsors_firstcredits AS given WHERE given.call_id = call.id)
) AS part
WHERE (call.counted_credits, call.counted_calls) <> (part.credits, part.calls)
UNION ALL
SELECT 'the hold of a sponsored call is its sponsor''s', hold.account_id::text, account.id::text,
       jsonb_build_object('sponsored call', call.id::text)
FROM sponsors_sponsoredcall AS call
JOIN sponsors_policyversion AS terms ON terms.id = call.version_id
JOIN sponsors_policy AS policy ON policy.id = terms.policy_id
JOIN credits_account AS account ON account.sponsor_id = policy.sponsor_id
LEFT JOIN sponsors_firstcredits AS given ON given.call_id = call.id
JOIN credits_hold AS hold ON hold.id IN (call.sponsor_hold_id, given.hold_id)
WHERE hold.account_id <> account.id
UNION ALL
SELECT 'a hold of first credits is that of a new profile under terms that give them', hold.amount::text,
       coalesce(terms.first_credits::text, 'nothing'), jsonb_build_object('hold', hold.id::text)
FROM credits_hold AS hold
LEFT JOIN sponsors_firstcredits AS given ON given.hold_id = hold.id
LEFT JOIN sponsors_sponsoredcall AS call ON call.id = given.call_id
LEFT JOIN sponsors_policyversion AS terms ON terms.id = call.version_id
WHERE (hold.key LIKE 'first:%' OR given.id IS NOT NULL)
  AND (hold.key NOT LIKE 'first:%' OR hold.amount IS DISTINCT FROM terms.first_credits)
UNION ALL
SELECT 'first credits are given to a profile that gets them once', 'nothing', 'its digest',
       jsonb_build_object('hold', hold.id::text)
FROM sponsors_firstcredits AS given
JOIN credits_hold AS hold ON hold.id = given.hold_id AND hold.status = 'CAPTURED'
WHERE given.digest IS NULL
UNION ALL
SELECT 'home credits are first credits under their terms', concat_ws(' on ', home.credits, home.chain_ids),
       coalesce(concat_ws(' on ', terms.first_credits, terms.first_chain_ids), 'nothing'),
       jsonb_build_object('account', home.account_id::text)
FROM credits_homecredits AS home
JOIN credits_account AS account ON account.id = home.account_id
LEFT JOIN sponsors_sponsoredcall AS call
    ON call.user_id = account.user_id AND EXISTS (
        SELECT FROM sponsors_firstcredits AS given
        JOIN credits_hold AS hold ON hold.id = given.hold_id AND hold.status = 'CAPTURED' WHERE given.call_id = call.id
    )
LEFT JOIN sponsors_policyversion AS terms ON terms.id = call.version_id
WHERE (home.credits, home.chain_ids) IS DISTINCT FROM (terms.first_credits, terms.first_chain_ids)
UNION ALL
SELECT 'a voucher is used by a call of its sponsor', coalesce(used.signer, 'nothing'),
       CASE terms.profiles WHEN 'vouched' THEN 'a voucher of a signer of the sponsor' ELSE 'nothing' END,
       jsonb_build_object('sponsored call', call.id::text)
FROM sponsors_sponsoredcall AS call
JOIN sponsors_policyversion AS terms ON terms.id = call.version_id
JOIN sponsors_policy AS policy ON policy.id = terms.policy_id
LEFT JOIN sponsors_usedvoucher AS used ON used.call_id = call.id
WHERE CASE WHEN terms.profiles <> 'vouched' THEN used.id IS NOT NULL ELSE NOT EXISTS (
    SELECT FROM sponsors_vouchersigner AS signer
    WHERE signer.sponsor_id = policy.sponsor_id AND used.sponsor_id = policy.sponsor_id AND signer.address = used.signer
) END
UNION ALL
SELECT 'a member has the role that the audit log gave', member.role, coalesce(newest.role, 'nothing'),
       jsonb_build_object('sponsor', member.sponsor_id::text, 'user', member.user_id::text)
FROM sponsors_member AS member JOIN users_user AS person ON person.id = member.user_id
LEFT JOIN LATERAL (
    SELECT coalesce(
               substring(change_message FROM '"role of person ' || person.id || '": \["[a-z]*", "([a-z]*)"\]'),
               substring(change_message FROM '"role": \["", "([a-z]*)"\]')
           ) AS role
    FROM logged
    WHERE object_id = member.sponsor_id::text
      AND (change_message LIKE '%"role of person ' || person.id || '": %'
           OR change_message LIKE '%"profile": ["", "' || person.profile_address || '"]%')
    ORDER BY id DESC LIMIT 1
) AS newest ON true
WHERE member.role IS DISTINCT FROM newest.role
UNION ALL
SELECT 'what staff have switched off is off', 'on', 'off', jsonb_build_object(part.model, part.id::text)
FROM (
    SELECT 'sponsor' AS model, id, is_frozen AS is_off FROM sponsors_sponsor
    UNION ALL
    SELECT 'policy', id, NOT is_enabled FROM sponsors_policy
) AS part
JOIN switched ON switched.model = part.model AND switched.object_id = part.id::text
WHERE switched.is_off AND NOT part.is_off
