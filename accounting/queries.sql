-- name: gas
-- The cost of mined attempts on the home chain in wei, by day, the account that pays, and its entry, if it was charged.
-- The cost of a call that a user and a sponsor paid is divided as their charges are. `oldest` limits what is read.
SELECT payer.account_id, payer.user_id, sponsor.slug, payer.entry_id,
       (coalesce(mined_at, attempt.created_at) AT TIME ZONE 'UTC')::date AS day, sum(payer.wei)
FROM relay_attempt AS attempt
JOIN relay_relaytransaction AS call ON call.id = attempt.relay_transaction_id
JOIN credits_hold AS hold ON hold.id = call.hold_id
LEFT JOIN sponsors_sponsoredcall AS sponsored ON sponsored.hold_id = hold.id
LEFT JOIN credits_hold AS other ON other.id = sponsored.sponsor_hold_id AND other.entry_id IS NOT NULL
CROSS JOIN LATERAL (
    SELECT gas_used * effective_gas_price_wei + extra_fee_wei AS wei, coalesce(div(
        (gas_used * effective_gas_price_wei + extra_fee_wei) * other.captured_amount,
        other.captured_amount + coalesce(hold.captured_amount, 0)
    ), 0) AS of_sponsor
) AS gas
CROSS JOIN LATERAL (VALUES
    (hold.account_id, call.user_id, hold.entry_id, gas.wei - gas.of_sponsor),
    (other.account_id, NULL, other.entry_id, gas.of_sponsor)
) AS payer (account_id, user_id, entry_id, wei)
JOIN credits_account AS account ON account.id = payer.account_id
LEFT JOIN sponsors_sponsor AS sponsor ON sponsor.id = account.sponsor_id
WHERE (payer.wei > 0 OR other.id IS NULL)
    AND attempt.chain_id = %(home)s AND attempt.created_at >= %(oldest)s AND attempt.created_at < %(until)s AND gas_used IS NOT NULL
    AND coalesce(mined_at, attempt.created_at) >= %(since)s AND coalesce(mined_at, attempt.created_at) < %(until)s
GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5

-- name: funding
-- The fees in wei of transfers from treasuries to relayers, by chain and the UTC day on which they ended.
SELECT chain_id, (ended_at AT TIME ZONE 'UTC')::date AS day, sum(fee_wei) FROM relay_topup
WHERE ended_at >= %(since)s AND ended_at < %(until)s AND fee_wei > 0 GROUP BY 1, 2 ORDER BY 1, 2

-- name: spent
-- By chain and UTC day: mined transactions of calls, the credits charged for these calls, what the credits pay for at
-- the prices of the calls, and the cost, both in wei.
SELECT attempt.chain_id, (coalesce(mined_at, attempt.created_at) AT TIME ZONE 'UTC')::date AS day, count(*), sum(charged),
       sum(charged * call.credit_wei), sum(gas_used * effective_gas_price_wei + extra_fee_wei)
FROM relay_attempt AS attempt
JOIN relay_relaytransaction AS call ON call.id = attempt.relay_transaction_id
JOIN credits_hold AS hold ON hold.id = call.hold_id
LEFT JOIN sponsors_sponsoredcall AS sponsored ON sponsored.hold_id = hold.id
LEFT JOIN credits_hold AS other ON other.id = sponsored.sponsor_hold_id
CROSS JOIN LATERAL (
    SELECT coalesce(hold.captured_amount, 0) + coalesce(other.captured_amount, 0) AS charged
) AS both_parts
WHERE attempt.created_at >= %(oldest)s AND attempt.created_at < %(until)s AND gas_used IS NOT NULL
    AND coalesce(mined_at, attempt.created_at) >= %(since)s AND coalesce(mined_at, attempt.created_at) < %(until)s
GROUP BY 1, 2 ORDER BY 1, 2

-- name: relayers
-- What the receipts of each chain's relayers add up to, in wei.
SELECT relayer.chain_id, sum(gas_used * effective_gas_price_wei + extra_fee_wei)
FROM relay_relayer AS relayer JOIN relay_attempt AS attempt ON attempt.relayer_id = relayer.id
WHERE attempt.created_at >= %(oldest)s AND attempt.created_at < %(until)s AND gas_used IS NOT NULL
    AND coalesce(mined_at, attempt.created_at) >= %(since)s AND coalesce(mined_at, attempt.created_at) < %(until)s
GROUP BY 1 ORDER BY 1

-- name: averages
-- The average charge of a call in credits, and its average cost for each gas in wei. The cost of a call is the sum of
-- its user's and its sponsor's charges.
SELECT avg(charged), sum(gas_used * effective_gas_price_wei + extra_fee_wei) / nullif(sum(gas_used), 0)
FROM relay_attempt AS attempt
JOIN relay_relaytransaction AS call ON call.id = attempt.relay_transaction_id
JOIN credits_hold AS hold ON hold.id = call.hold_id
LEFT JOIN sponsors_sponsoredcall AS sponsored ON sponsored.hold_id = hold.id
LEFT JOIN credits_hold AS other ON other.id = sponsored.sponsor_hold_id
CROSS JOIN LATERAL (
    SELECT coalesce(hold.captured_amount, 0) + coalesce(other.captured_amount, 0) AS charged
) AS both_parts
WHERE attempt.chain_id = %(home)s AND attempt.created_at >= %(since)s AND gas_used > 0 AND charged > 0
