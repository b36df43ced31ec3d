-- name: find_differences(caused, rules)
-- Entries and causes that do not fit: rule, what is stored, what the other side says, and the ids of the rows.
WITH caused (source, key, account_id, amount) AS (@caused@)
SELECT 'an entry has a cause', entry.source || ' ' || entry.amount,
       coalesce(caused.source || ' ' || caused.amount || ' to account ' || caused.account_id, 'nothing'),
       jsonb_build_object('account', entry.account_id::text, 'entry', entry.id::text, 'key', entry.key)
FROM credits_entry AS entry LEFT JOIN caused ON caused.key = entry.key
WHERE (entry.source, entry.account_id, entry.amount)
    IS DISTINCT FROM (caused.source, caused.account_id, caused.amount)
UNION ALL
SELECT 'a cause has an entry', 'nothing', caused.source || ' ' || caused.amount,
       jsonb_build_object('account', caused.account_id::text, 'key', caused.key)
FROM caused WHERE NOT EXISTS (SELECT FROM credits_entry AS entry WHERE entry.key = caused.key)
UNION ALL
@rules@
ORDER BY 1, 4

-- name: caused
-- The entries of captured holds and of those that were captured before they were reopened, of expired lots, of debts
-- that moved, and of adjustments. An expiry and a debt are caused by other entries, so those must fit each other.
SELECT CASE WHEN hold.key LIKE 'first:%' THEN 'FIRST_CREDITS' ELSE 'RELAY_TRANSACTION' END,
       'hold:' || hold.id || coalesce(':' || nullif(hold.reopenings, 0), ''), hold.account_id, -hold.captured_amount
FROM credits_hold AS hold WHERE hold.status = 'CAPTURED'
UNION ALL
SELECT pair.*
FROM credits_hold AS hold
CROSS JOIN LATERAL generate_series(0, hold.reopenings - 1) AS earlier
JOIN credits_entry AS charge
    ON charge.key = 'hold:' || hold.id || coalesce(':' || nullif(earlier, 0), '') AND charge.amount < 0
CROSS JOIN LATERAL (VALUES
    (CASE WHEN hold.key LIKE 'first:%' THEN 'FIRST_CREDITS' ELSE 'RELAY_TRANSACTION' END, charge.key, hold.account_id, charge.amount),
    ('RELAY_REVERSAL', 'reversal:' || charge.key, hold.account_id, -charge.amount)
) AS pair
WHERE hold.reopenings > 0
UNION ALL
SELECT 'CREDIT_EXPIRY', entry.key, lot.account_id, entry.amount
FROM credits_expiringlot AS expiring
JOIN credits_entry AS lot ON lot.id = expiring.entry_id
JOIN credits_entry AS entry
    ON entry.source = 'CREDIT_EXPIRY' AND entry.key LIKE 'expiry:%'
    AND split_part(entry.key, ':', 2) = expiring.entry_id::text AND entry.amount BETWEEN -lot.amount AND -1
UNION ALL
SELECT side.*
FROM credits_entry AS origin
JOIN credits_account AS account ON account.id = origin.account_id
JOIN users_user AS person ON person.id = account.user_id AND person.profile_address IS NULL AND NOT person.is_active
CROSS JOIN LATERAL (SELECT 'debt:' || origin.account_id || ':' || origin.account_version AS key) AS debt
JOIN credits_entry AS taken
    ON taken.key = debt.key || ':to' AND taken.amount = -origin.amount AND taken.account_id <> origin.account_id
CROSS JOIN LATERAL (VALUES
    ('DEBT_TRANSFER', debt.key || ':from', origin.account_id, -origin.balance_before),
    ('DEBT_TRANSFER', taken.key, taken.account_id, taken.amount)
) AS side
WHERE origin.source = 'DEBT_TRANSFER' AND origin.amount > 0
UNION ALL
SELECT 'STAFF_ADJUSTMENT', 'approval:' || approval.id, account.id, (approval.payload ->> 'credits')::bigint
FROM @carried_out@ AS approval JOIN credits_account AS account ON account.user_id::text = approval.object_id
WHERE approval.kind = 'adjust_credits'
UNION ALL
SELECT 'STAFF_ADJUSTMENT', 'approval:' || approval.id, account.id, (approval.payload ->> 'credits')::bigint
FROM @carried_out@ AS approval JOIN credits_account AS account ON account.sponsor_id::text = approval.object_id
WHERE approval.kind = 'fund_sponsor'

-- name: adjustment_rules
-- Adjustments under another name than that of the request.
SELECT 'an adjustment names who asked for it', coalesce(entry.actor_id::text, 'nobody'), approval.requested_by_id::text,
       jsonb_build_object('account', entry.account_id::text, 'entry', entry.id::text, 'key', entry.key)
FROM credits_entry AS entry
JOIN gateway_admin_approvalrequest AS approval ON 'approval:' || approval.id = entry.key
WHERE entry.source = 'STAFF_ADJUSTMENT' AND entry.actor_id IS DISTINCT FROM approval.requested_by_id
