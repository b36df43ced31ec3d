-- name: reserve
-- Reserves a possible loss, unless one of the limits is reached.
SELECT relay_reserve_loss(
    %(chain)s, %(key)s, %(user)s, %(kind)s, %(amount)s, %(now)s, %(of_user)s::numeric, %(of_service)s::numeric
)

-- name: settle_ended
-- Sets the loss of calls that ended, and drops the reservations of quotes that expired. A call's reservation has the
-- same key as its hold.
WITH expired AS (
    DELETE FROM relay_quote WHERE expires_at <= %(expired)s RETURNING chain_id, 'quote:' || id AS key
), released AS (
    DELETE FROM relay_loss AS loss USING expired WHERE loss.chain_id = expired.chain_id AND loss.key = expired.key
)
UPDATE relay_loss AS loss
SET lost_wei = greatest(0, ended.spent_wei - ended.paid * ended.credit_wei), settled_at = %(now)s
FROM (
    SELECT open.id, call.credit_wei, coalesce(-entry.amount, 0) + coalesce(of_sponsor.captured_amount, 0) AS paid, coalesce((
        SELECT max(attempt.gas_used * attempt.effective_gas_price_wei + attempt.extra_fee_wei) FROM relay_attempt AS attempt
        WHERE attempt.relay_transaction_id = call.id AND attempt.status = @mined@
    ), 0) AS spent_wei
    FROM relay_loss AS open
    JOIN credits_hold AS hold ON hold.key = open.key
    JOIN relay_relaytransaction AS call ON call.hold_id = hold.id
    LEFT JOIN credits_entry AS entry ON entry.id = hold.entry_id
    LEFT JOIN sponsors_sponsoredcall AS sponsored ON sponsored.hold_id = hold.id
    LEFT JOIN credits_hold AS of_sponsor ON of_sponsor.id = sponsored.sponsor_hold_id
    WHERE open.chain_id = %(chain)s AND open.settled_at IS NULL
      AND call.status NOT IN @in_progress@
) AS ended
WHERE loss.id = ended.id
RETURNING loss.id

-- name: note_excess
-- Stores what mined calls of these holds have cost above the credits paid for them as a loss, up to their fee besides
-- gas, unless it was reserved. A call that a reorganisation reopened has a reservation.
INSERT INTO relay_loss (chain_id, key, user_id, kind, reserved_wei, lost_wei, reserved_at, settled_at)
SELECT call.chain_id, hold.key, call.user_id, @extra_fee@, excess.wei, excess.wei, %(now)s, %(now)s
FROM credits_hold AS hold
JOIN relay_relaytransaction AS call ON call.hold_id = hold.id
JOIN relay_attempt AS mined ON mined.relay_transaction_id = call.id AND mined.status = @mined@
LEFT JOIN sponsors_sponsoredcall AS sponsored ON sponsored.hold_id = hold.id
LEFT JOIN credits_hold AS of_sponsor ON of_sponsor.id = sponsored.sponsor_hold_id
CROSS JOIN LATERAL (
    SELECT least(mined.extra_fee_wei, mined.gas_used * mined.effective_gas_price_wei + mined.extra_fee_wei
        - (coalesce(hold.captured_amount, 0) + coalesce(of_sponsor.captured_amount, 0)) * call.credit_wei)
) AS excess (wei)
WHERE hold.id = ANY(%(holds)s::bigint[]) AND excess.wei > 0
ON CONFLICT (chain_id, key) DO NOTHING
RETURNING id

-- name: usage
-- What calls have cost the service since a given time, and what is reserved, in wei.
SELECT coalesce(sum(lost_wei), 0), coalesce(sum(reserved_wei) FILTER (WHERE settled_at IS NULL), 0)
FROM relay_loss WHERE chain_id = %(chain)s AND (settled_at IS NULL OR settled_at > %(since)s)

-- name: biggest
-- The ten users whose calls have cost most since a given time, or may still.
SELECT profile.id, coalesce(profile.profile_address, profile.username), coalesce(sum(loss.lost_wei), 0),
       coalesce(sum(loss.reserved_wei) FILTER (WHERE loss.settled_at IS NULL), 0)
FROM relay_loss AS loss JOIN users_user AS profile ON profile.id = loss.user_id
WHERE loss.chain_id = %(chain)s AND (loss.settled_at IS NULL OR loss.settled_at > %(since)s)
GROUP BY profile.id ORDER BY sum(coalesce(loss.lost_wei, loss.reserved_wei)) DESC, profile.id LIMIT 10
