-- name: badges_at
-- The badge of each track and experience, in their order; NULLs where the track has no badge.
SELECT @badge_columns@
FROM unnest(%(tracks)s::text[], %(experience)s::bigint[]) WITH ORDINALITY AS level (track, experience, place)
LEFT JOIN LATERAL rewards_badge_at(level.track, level.experience) AS badge ON true
ORDER BY place

-- name: badge_debt(user, now, period_runs)
-- The debt limit of a user's badges: the permanent badge's or, while an allowance runs, the subscriber badge's limit if
-- that is larger.
SELECT greatest(0, permanent.acceptable_credit_debt,
                CASE WHEN @period_runs@ THEN subscriber.acceptable_credit_debt END)
FROM (
    SELECT coalesce(max(permanent_experience), 0) AS permanent,
           coalesce(max(subscriber_experience), 0) AS subscriber
    FROM rewards_progress WHERE user_id = @user@
) AS experience
LEFT JOIN LATERAL rewards_badge_at('PERMANENT', experience.permanent) AS permanent ON true
LEFT JOIN LATERAL rewards_badge_at('SUBSCRIBER', experience.subscriber) AS subscriber ON true
LEFT JOIN credits_allowance AS allowance ON allowance.user_id = @user@

-- name: debt_limit_of(badge_debt)
-- How many credits a user may owe. `credits_debt_limit` decides here, as it does when credits are held.
SELECT credits_debt_limit((SELECT id FROM credits_account WHERE user_id = %(user)s), (@badge_debt@))
