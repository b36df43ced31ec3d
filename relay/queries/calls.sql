-- name: call_rows
-- What the rows contain about each submitted call: `CallRows`, in the order of the calls. Calls that staff
-- cancelled, or that were cancelled for an unfunded relayer or a lost account nonce, do not count towards the limits,
-- because their caller did not cause it.
SELECT @callers_session_state@,
       earlier.transaction_hash, earlier.generation, earlier.failures, @is_paused@,
       (SELECT settled_at FROM relay_relaytransaction AS ended
        WHERE ended.user_id = call.user_id AND ended.settled_at > call.now - interval '1 hour'
          AND ended.status IN @unsuccessful@
          AND @callers_doing@
        ORDER BY settled_at DESC OFFSET %(per_hour)s - 1 LIMIT 1),
       (SELECT settled_at FROM relay_relaytransaction AS ended
        WHERE ended.user_id = call.user_id AND ended.settled_at > call.now - interval '1 day'
          AND ended.status IN @unsuccessful@
          AND @callers_doing@
        ORDER BY settled_at DESC OFFSET %(per_day)s - 1 LIMIT 1),
       (@badge_debt@), trusted.codes,
       (SELECT key_manager_address FROM relay_relaytransaction AS newest
        WHERE newest.user_id = call.user_id AND newest.chain_id = %(chain)s
        ORDER BY newest.id DESC LIMIT 1) = call.key_manager,
       quote.digest, quote.credits, quote.gas_limit, quote.max_fee_per_gas_wei, quote.expires_at,
       quote.used_at IS NOT NULL, quote.sponsor_version_id, quote.max_extra_fee_wei,
       coalesce((
           SELECT tip_wei FROM relay_leasttip
           WHERE chain_id = %(chain)s AND confirmed_at > call.now - interval '1 hour'
       ), 0),
       coalesce(quote.credit_wei, (
           SELECT credit_wei FROM relay_creditprice WHERE chain_id = %(chain)s ORDER BY valid_from DESC LIMIT 1
       ), %(first_credit_wei)s)
FROM jsonb_to_recordset(%(calls)s::jsonb) AS call (
    place integer, user_id bigint, session_id uuid, digest text, controller text, key_manager text, quote uuid,
    now timestamptz
)
CROSS JOIN (@trusted_codes@) AS trusted (codes)
LEFT JOIN LATERAL (
    SELECT max(transaction_hash) FILTER (WHERE user_id = call.user_id AND status IN @active@) AS transaction_hash,
           coalesce(max(generation) + 1, 0) AS generation,
           count(*) FILTER (WHERE status = @failed@) AS failures
    FROM relay_relaytransaction
    WHERE chain_id = %(chain)s AND digest = call.digest AND controller_address = call.controller
) AS earlier ON true
LEFT JOIN relay_quote AS quote
       ON quote.id = call.quote AND quote.user_id = call.user_id AND quote.chain_id = %(chain)s
ORDER BY call.place

-- name: controller_of_session
-- The state of a session, and the controller that signed in.
SELECT @session_state@,
       (SELECT controller_address FROM users_signinsession WHERE id = CAST(%(session)s AS uuid))

-- name: quota_rows
-- The state of a session, the user's available credits, and the paid period.
SELECT @session_state@, coalesce(account.balance - account.held, 0), @period_columns@
FROM (SELECT) AS always
LEFT JOIN credits_account AS account ON account.user_id = %(user)s
LEFT JOIN credits_allowance AS allowance ON allowance.user_id = %(user)s
