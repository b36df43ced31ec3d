-- name: timeline
-- The newest calls, entries and check-ins of a user as rows of one shape. Each list is sorted by descending `moment`,
-- so merging by it keeps the order of each list.
WITH call AS (
    SELECT id, created_at, min(created_at) OVER (ORDER BY id DESC) AS moment, status, failure_code, transaction_hash,
           expected_cost, hold_id, substring(payload FOR @payload_bytes@) AS payload
    FROM relay_relaytransaction
    WHERE user_id = %(user)s AND id < %(call)s AND 'call' = ANY(%(kinds)s)
      AND (%(calls)s::bigint[] IS NULL OR id = ANY(%(calls)s)) ORDER BY id DESC LIMIT %(limit)s
), entry AS (
    SELECT entry.*, min(created_at) OVER (ORDER BY account_version DESC) AS moment
    FROM credits_entry AS entry
    WHERE account_id = (SELECT id FROM credits_account WHERE user_id = %(user)s)
      AND source NOT IN (@other_sources@) AND account_version < %(entry)s AND 'entry' = ANY(%(kinds)s)
    ORDER BY account_version DESC LIMIT %(limit)s
), check_in AS (
    SELECT id, day, attempt, created_at, min(created_at) OVER (ORDER BY day DESC, attempt DESC) AS moment,
           (possible_results -> result_place::int)::text AS result
    FROM checkin_checkin
    WHERE user_id = %(user)s AND (day, attempt) < (%(day)s::date, %(attempt)s) AND 'check-in' = ANY(%(kinds)s)
    ORDER BY day DESC, attempt DESC LIMIT %(limit)s
), happening AS (
    SELECT 'call' AS kind, call.id AS key, call.created_at AS at, call.moment,
           coalesce(charge.amount, CASE WHEN hold.status = 'HELD' THEN -call.expected_cost ELSE 0 END)
               + coalesce(back.amount, 0) AS credits,
           coalesce(back.balance_after, charge.balance_after) AS balance_after,
           'RELAY_TRANSACTION' AS source, '' AS cause, NULL::bigint AS amount_minor, '' AS currency,
           call.status, call.failure_code, call.transaction_hash, coalesce(back.amount, 0) AS cashback,
           coalesce(sponsor.slug, '') AS sponsor, call.payload, NULL::date AS day, NULL::int AS attempt,
           NULL::text AS drop
    FROM call
    JOIN credits_hold AS hold ON hold.id = call.hold_id
    LEFT JOIN credits_entry AS charge ON charge.id = hold.entry_id
    LEFT JOIN credits_entry AS back ON back.key = 'back:' || charge.key
    LEFT JOIN sponsors_sponsoredcall AS sponsored ON sponsored.hold_id = hold.id
    LEFT JOIN sponsors_policyversion AS version ON version.id = sponsored.version_id
    LEFT JOIN sponsors_policy AS policy ON policy.id = version.policy_id
    LEFT JOIN sponsors_sponsor AS sponsor ON sponsor.id = policy.sponsor_id
    UNION ALL
    SELECT 'entry', entry.account_version, entry.created_at, entry.moment, entry.amount, entry.balance_after,
           entry.source, entry.key, payout.amount_minor + payout.tax_minor, coalesce(payout.currency, ''),
           '', '', '', 0, '', ''::bytea, NULL, NULL, NULL
    FROM entry LEFT JOIN payments_payout AS payout ON payout.entry_id = entry.id
    UNION ALL
    SELECT 'check-in', check_in.id, check_in.created_at, check_in.moment, coalesce(won.amount, 0), won.balance_after,
           'CHECK_IN', '', NULL, '', '', '', '', 0, '', ''::bytea, check_in.day, check_in.attempt,
           check_in.result
    FROM check_in LEFT JOIN credits_entry AS won ON won.key = 'check-in:' || check_in.id
)
SELECT @members@ FROM happening ORDER BY moment DESC, kind, key DESC LIMIT %(limit)s
