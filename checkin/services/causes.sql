-- name: caused
-- The entries of check-ins that drew credits.
SELECT 'CHECK_IN', 'check-in:' || drawn.id, drawn.account_id, drawn.value::bigint
FROM (
    SELECT check_in.id, account.id AS account_id, possible_results -> result_place ->> 'type' AS type,
           substring(possible_results -> result_place ->> 'value' FROM '^[0-9]{1,18}$') AS value
    FROM checkin_checkin AS check_in JOIN credits_account AS account ON account.user_id = check_in.user_id
) AS drawn
WHERE drawn.type = 'CREDITS'
