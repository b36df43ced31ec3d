-- name: in_force
-- The newest published drop table of each badge, or else that of the nearest badge below it, by track.
SELECT level.track, @table_columns@
FROM unnest(%(tracks)s::text[], %(bounds)s::bigint[]) AS level (track, bound)
CROSS JOIN LATERAL (
    SELECT own.* FROM checkin_droptable AS own JOIN rewards_badge AS badge ON badge.id = own.badge_id
    WHERE badge.track = level.track AND badge.exp_lower_bound <= level.bound AND own.published_at IS NOT NULL
    ORDER BY badge.exp_lower_bound DESC, own.published_at DESC, own.id DESC
    LIMIT 1
) AS newest
