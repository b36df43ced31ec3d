-- name: in_flight
-- The attempts of calls in progress: an `_InFlight` for each. Calls are listed first: with statistics from an idle
-- moment, PostgreSQL would scan them once for each attempt.
WITH call AS MATERIALIZED (
    SELECT id, user_id, is_superseded, validity, credit_wei FROM relay_relaytransaction
    WHERE chain_id = %(chain)s AND status IN @in_progress@
)
SELECT attempt.id, attempt.relay_transaction_id, call.user_id, attempt.relayer_id, attempt.account_nonce, attempt.kind,
       attempt.status, attempt.transaction_hash, attempt.block_hash, attempt.first_sent_at,
       attempt.max_fee_per_gas_wei, call.is_superseded, attempt.succeeded, attempt.gas_used,
       attempt.effective_gas_price_wei, attempt.extra_fee_wei, call.validity,
       call.credit_wei,
       -- A transaction waits from its first broadcast on, or from when the service saw its predecessor mined.
       greatest(coalesce(attempt.first_sent_at, attempt.created_at), (
           SELECT max(mined_at) FROM relay_attempt AS before
           WHERE before.relayer_id = attempt.relayer_id AND before.account_nonce = attempt.account_nonce - 1
       ))
FROM call JOIN relay_attempt AS attempt ON attempt.relay_transaction_id = call.id
ORDER BY attempt.relayer_id, attempt.account_nonce, attempt.sequence

-- name: update_receipts
-- Stores the receipts of attempts, and the status of their calls. The receipt is null for an attempt whose block was
-- removed; that attempt is then resent at once. The count is read first, so calls are locked before attempts, as
-- everywhere.
WITH receipt AS (
    SELECT * FROM jsonb_to_recordset(%(receipts)s::jsonb) AS receipt (
        id bigint, transaction_id bigint, is_call boolean, status text,
        number bigint, hash text, succeeded boolean, gas bigint, price numeric,
        extra numeric
    )
), outcome AS (
    SELECT transaction_id, coalesce(bool_or(NOT succeeded) FILTER (WHERE is_call), false) AS reverted,
           bool_or(is_call) AS is_call
    FROM receipt GROUP BY transaction_id
), moved AS (
    UPDATE relay_relaytransaction AS call
    SET status = @submitted@, terminal_status = CASE
        WHEN outcome.reverted AND terminal_status = '' THEN @failed@
        WHEN outcome.is_call AND NOT outcome.reverted AND terminal_status = @failed@ THEN ''
        ELSE terminal_status END
    FROM outcome
    WHERE call.id = outcome.transaction_id AND call.status IN @in_progress@ AND (
        call.status = @pending@ OR outcome.reverted AND terminal_status = ''
        OR outcome.is_call AND NOT outcome.reverted AND terminal_status = @failed@
    )
    RETURNING call.id
)
UPDATE relay_attempt AS attempt
SET status = receipt.status, block_number = receipt.number, block_hash = coalesce(receipt.hash, ''),
    succeeded = receipt.succeeded, gas_used = receipt.gas, effective_gas_price_wei = receipt.price,
    extra_fee_wei = coalesce(receipt.extra, 0),
    mined_at = CASE WHEN receipt.number IS NOT NULL THEN %(now)s::timestamptz END,
    sent_at = CASE WHEN receipt.number IS NOT NULL THEN sent_at END
FROM receipt, (SELECT count(*) FROM moved) AS done
WHERE attempt.id = receipt.id
RETURNING attempt.id
