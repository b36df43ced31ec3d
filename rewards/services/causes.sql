-- name: caused
-- The entries of cashback that came to whole credits, and of its reversals.
SELECT CASE WHEN cashback.key LIKE 'reversal:%' THEN 'RELAY_REVERSAL' ELSE 'CREDITS_BACK' END, cashback.key,
       account.id, cashback.credits
FROM rewards_cashback AS cashback
JOIN rewards_progress AS progress ON progress.id = cashback.progress_id
JOIN credits_account AS account ON account.user_id = progress.user_id
WHERE cashback.credits <> 0

-- name: rules
-- Cashback that exceeds its charge or has none, and reversals of something else than a cashback of the same person.
SELECT 'cashback is a part of its charge', cashback.amount::text, coalesce((-charge.amount)::text, 'no charge'),
       jsonb_build_object('account', account.id::text, 'key', cashback.key)
FROM rewards_cashback AS cashback
JOIN rewards_progress AS progress ON progress.id = cashback.progress_id
JOIN credits_account AS account ON account.user_id = progress.user_id
LEFT JOIN credits_entry AS charge
    ON 'back:' || charge.key = cashback.key AND charge.source = 'RELAY_TRANSACTION' AND charge.account_id = account.id
LEFT JOIN rewards_cashback AS first
    ON 'reversal:' || first.key = cashback.key AND first.progress_id = cashback.progress_id
WHERE cashback.amount NOT BETWEEN 0 AND coalesce(-charge.amount * @credit_parts@, -1)
  AND cashback.amount IS DISTINCT FROM -first.amount
