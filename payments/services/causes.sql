-- name: caused
-- The entries of payouts and clawbacks, on the account of the payer or of the sponsor that the purchase was for.
WITH paid AS (
    SELECT payout.*, coalesce(of_sponsor.id, of_payer.id) AS account_id
    FROM payments_payout AS payout
    LEFT JOIN payments_purchase AS purchase ON purchase.id = payout.purchase_id
    LEFT JOIN credits_account AS of_sponsor ON of_sponsor.sponsor_id = purchase.sponsor_id
    LEFT JOIN credits_account AS of_payer ON of_payer.user_id = payout.user_id
)
SELECT CASE WHEN subscription_id IS NULL THEN 'CREDIT_PURCHASE' ELSE 'SUBSCRIBED_PAYOUT' END,
       'stripe:invoice:' || stripe_invoice_id, account_id, credits
FROM paid
UNION ALL
SELECT 'PAYOUT_CLAWBACK', clawback.key, paid.account_id, -clawback.credits
FROM payments_clawback AS clawback JOIN paid ON paid.id = clawback.payout_id
WHERE clawback.credits <> 0

-- name: rules
-- Rates that no request has added, except those with which a new database begins.
SELECT 'a payout rate was approved', rate.credits_per_major_unit || ' for 1.00 ' || rate.currency,
       coalesce(terms ->> 'credits_per_major_unit' || ' for 1.00 ' || (terms ->> 'currency'), 'nothing'),
       jsonb_build_object('payout rate', rate.id::text)
FROM payments_payoutrate AS rate
LEFT JOIN (
    SELECT made_id, payload -> 'values' AS terms FROM @carried_out@ AS approval WHERE kind = 'add_payout_rate'
) AS approval ON approval.made_id = rate.id::text
WHERE (rate.credits_per_major_unit::text, rate.currency)
    IS DISTINCT FROM (terms ->> 'credits_per_major_unit', terms ->> 'currency')
  AND (rate.valid_from, rate.credits_per_major_unit) <> ('2020-01-01 00:00:00+00', 1000)
