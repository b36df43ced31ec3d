-- name: count
-- How many users move from each level before the change to each level after it. One pass over all progress rows.
-- `rewards_badge_at` cannot be used, since the changed levels are not stored; `width_bucket` counts the lower bounds
-- that an experience has reached.
SELECT width_bucket(experience, %(before)s::bigint[]), width_bucket(experience, %(after)s::bigint[]), count(*)
FROM (
    SELECT CASE %(track)s WHEN 'PERMANENT' THEN permanent_experience ELSE subscriber_experience END AS experience
    FROM rewards_progress
) AS progress
GROUP BY 1, 2 ORDER BY 1, 2
