-- The badge of a track at an experience: the one whose range holds it; no row where the track has no badges.
-- Ranges are compared here and, for a batch whose experience changes in memory, in `rewards.rules.badge_at`.
-- A single STABLE SELECT, so that PostgreSQL inlines it.
CREATE OR REPLACE FUNCTION rewards_badge_at(track text, experience bigint) RETURNS SETOF rewards_badge
LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT badge.* FROM rewards_badge AS badge
    WHERE badge.track = rewards_badge_at.track
      AND badge.exp_lower_bound <= rewards_badge_at.experience
      AND (badge.exp_upper_bound IS NULL OR badge.exp_upper_bound > rewards_badge_at.experience)
$$;
