-- name: lock_today
-- Locks the row of today's unbacked credits, if there is one.
SELECT day FROM credits_unbackedday WHERE day = (statement_timestamp() AT TIME ZONE 'UTC')::date FOR NO KEY UPDATE

-- name: recount_today
-- Counts the part of each hold's new debt that it has used or may still use.
UPDATE credits_unbackedday AS today SET debt = (
    SELECT coalesce(sum(CASE hold.status WHEN 'HELD' THEN hold.debt
                        ELSE greatest(0, hold.debt - hold.amount + coalesce(hold.captured_amount, 0)) END), 0)
    FROM credits_hold AS hold WHERE hold.debt > 0 AND hold.debt_day = today.day
)
WHERE day = (statement_timestamp() AT TIME ZONE 'UTC')::date
RETURNING debt
