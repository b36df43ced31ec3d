-- name: find_differences
-- The rules between calls, attempts and holds that a row breaks: rule, call, attempt or hold, expected and actual
-- value. A hold that staff released, as the audit log shows, is left out.
WITH settled AS (
    SELECT call.id, call.status, call.settled_at, call.real_cost, hold.id AS hold_id,
           hold.amount + coalesce(of_sponsor.amount, 0) AS amount,
           coalesce(hold.captured_amount, 0) + coalesce(of_sponsor.captured_amount, 0) AS captured,
           of_sponsor.id AS sponsor_hold_id, of_sponsor.amount AS sponsor_amount,
           coalesce(of_sponsor.captured_amount, 0) AS sponsor_captured,
           ceil(call.real_cost * version.share_percent / 100.0) AS sponsor_part,
           mined.succeeded, mined.id AS attempt_id,
           CASE WHEN mined.kind = @call_kind@ AND call.failure_code NOT IN @uncharged@
                THEN ceil((mined.gas_used::numeric * mined.effective_gas_price_wei + mined.extra_fee_wei)
                          / call.credit_wei)
                ELSE 0 END AS cost
    FROM relay_relaytransaction AS call
    JOIN credits_hold AS hold ON hold.id = call.hold_id
    LEFT JOIN sponsors_sponsoredcall AS sponsored ON sponsored.hold_id = hold.id
    LEFT JOIN sponsors_policyversion AS version ON version.id = sponsored.version_id
    LEFT JOIN credits_hold AS of_sponsor ON of_sponsor.id = sponsored.sponsor_hold_id
    LEFT JOIN relay_attempt AS mined ON mined.relay_transaction_id = call.id
         AND mined.chain_id = call.chain_id AND mined.transaction_hash = call.transaction_hash
         AND mined.status = @mined@
    WHERE call.settled_at IS NOT NULL
), released AS (
    SELECT object_id FROM django_admin_log
    WHERE content_type_id = (
        SELECT id FROM django_content_type WHERE app_label = 'credits' AND model = 'credithold'
    ) AND change_message LIKE %(released)s
)
SELECT 'the cost is that of the attempt that was mined', id, attempt_id, cost, real_cost::numeric
FROM settled WHERE settled_at >= %(since)s AND real_cost <> cost
UNION ALL
SELECT 'captured is the cost, and never more than was held', id, hold_id, least(real_cost, amount), captured
FROM settled WHERE captured <> least(real_cost, amount)
    AND NOT (captured = 0 AND hold_id::text IN (SELECT object_id FROM released))
UNION ALL
SELECT 'a sponsor pays its part, and never more than was held for it', id, sponsor_hold_id,
       least(sponsor_part, sponsor_amount), sponsor_captured
FROM settled WHERE sponsor_captured <> least(sponsor_part, sponsor_amount)
UNION ALL
SELECT 'a sponsor''s hold is open while its call is in progress', call.id, of_sponsor.id,
       (call.status IN @in_progress@)::integer, (of_sponsor.status = 'HELD')::integer
FROM sponsors_sponsoredcall AS sponsored
LEFT JOIN sponsors_firstcredits AS given ON given.call_id = sponsored.id
JOIN credits_hold AS of_sponsor ON of_sponsor.id IN (sponsored.sponsor_hold_id, given.hold_id)
JOIN relay_relaytransaction AS call ON call.hold_id = sponsored.hold_id
WHERE (call.status IN @in_progress@) <> (of_sponsor.status = 'HELD')
UNION ALL
SELECT 'first credits are those of a profile that was deployed', call.id, gift.id, 0, gift.captured_amount
FROM sponsors_firstcredits AS given
JOIN sponsors_sponsoredcall AS sponsored ON sponsored.id = given.call_id
JOIN credits_hold AS gift ON gift.id = given.hold_id AND gift.status = 'CAPTURED'
JOIN relay_relaytransaction AS call ON call.hold_id = sponsored.hold_id
WHERE NOT call.deploys_profile OR call.status NOT IN (@success@, @executed_externally@)
UNION ALL
SELECT 'a success was mined, and succeeded', id, attempt_id, 1, CASE WHEN succeeded THEN 1 ELSE 0 END
FROM settled WHERE status = @success@ AND succeeded IS NOT TRUE
UNION ALL
SELECT 'a call in progress has an open hold', call.id, hold.id, 1, 0
FROM relay_relaytransaction AS call JOIN credits_hold AS hold ON hold.id = call.hold_id
WHERE call.status IN @in_progress@ AND hold.status <> 'HELD'
UNION ALL
SELECT 'an open hold has a call in progress', call.id, hold.id, 0, hold.amount
FROM credits_hold AS hold LEFT JOIN relay_relaytransaction AS call ON call.hold_id = hold.id
WHERE hold.status = 'HELD' AND hold.key LIKE 'relay:%%'
    AND (call.id IS NULL OR call.status NOT IN @in_progress@)
UNION ALL
SELECT 'a mined attempt has a whole receipt', relay_transaction_id, id, 1, 0
FROM relay_attempt
WHERE status = @mined@ AND (block_number IS NULL OR block_hash = '' OR succeeded IS NULL
    OR gas_used IS NULL OR effective_gas_price_wei IS NULL)
ORDER BY 2, 3, 1

-- name: settled
-- Attempts of a batch of settled calls whose blocks are final; without a final block, of all settled calls.
SELECT call.id, call.failure_code, call.real_cost, call.credit_wei, attempt.id, attempt.kind, attempt.transaction_hash,
       attempt.status = @mined@, attempt.block_number, attempt.block_hash, attempt.succeeded,
       attempt.gas_used, attempt.effective_gas_price_wei, attempt.extra_fee_wei
FROM (
    SELECT id, failure_code, real_cost, credit_wei FROM relay_relaytransaction AS call
    WHERE chain_id = %(chain)s AND id > %(last)s AND settled_at >= %(since)s
      AND created_at >= %(since)s::timestamptz - interval '1 day' AND NOT EXISTS (
        SELECT FROM relay_attempt AS young JOIN relay_finalblock AS final ON final.chain_id = young.chain_id
        WHERE young.relay_transaction_id = call.id AND young.block_number > final.number
    )
    ORDER BY id LIMIT %(most)s
) AS call
JOIN relay_attempt AS attempt ON attempt.relay_transaction_id = call.id
ORDER BY call.id, attempt.id

-- name: relayers
-- For each relayer: the account nonces taken, those of final attempts, the balance, and whether it is idle.
SELECT relayer.id, relayer.address, relayer.next_account_nonce, coalesce((
           SELECT account_nonce + 1 FROM relay_attempt AS attempt
           LEFT JOIN relay_finalblock AS final ON final.chain_id = attempt.chain_id
           WHERE attempt.relayer_id = relayer.id AND attempt.status = @mined@
             AND (final.number IS NULL OR attempt.block_number <= final.number)
           ORDER BY account_nonce DESC LIMIT 1
       ), 0), relayer.balance_wei, relayer.next_account_nonce <= relayer.mined_account_nonce
FROM relay_relayer AS relayer
WHERE relayer.chain_id = %(chain)s AND relayer.retired_at IS NULL AND relayer.synced_at IS NOT NULL
ORDER BY relayer.id

-- name: count
-- How many calls are settled, how many are in progress, mined attempts, and open holds of calls.
SELECT count(*) FILTER (WHERE settled_at IS NOT NULL), count(*) FILTER (WHERE settled_at IS NULL),
       (SELECT count(*) FROM relay_attempt WHERE status = @mined@),
       (SELECT count(*) FROM credits_hold WHERE status = 'HELD' AND key LIKE 'relay:%%')
FROM relay_relaytransaction
