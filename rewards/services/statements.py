"""
The SQL that moves experience: a total changes together with the entry that explains it.

The rules of `credits.services.statements` hold here too. Posting has two statements for the same
reason: `POST_EXPERIENCE` returns no row for a repeated key, while in `GAIN_EXPERIENCE` each total builds
on the one before, so a repeated key fails the whole statement.
"""

# Lock the progress, let the base grow by the badge of that total, insert the entry by its key, move the total.
# A database without badges grows at 1. No row: the key is taken, or the user has no progress row.
POST_EXPERIENCE = """
WITH locked AS (
    SELECT id, CASE %(track)s WHEN 'PERMANENT' THEN permanent_experience ELSE subscriber_experience END AS total
    FROM rewards_progress WHERE user_id = %(user)s FOR NO KEY UPDATE
), change AS (
    SELECT id, total, CASE
        WHEN %(base)s::bigint < 0 THEN greatest(%(base)s::bigint, -total)
        WHEN NOT %(grows)s::boolean THEN %(base)s::bigint
        ELSE floor(
            %(base)s::bigint * coalesce((SELECT exp_growth_rate FROM rewards_badge_at(%(track)s, total)), 1)
        )::bigint
    END AS amount
    FROM locked
), posted AS (
    INSERT INTO rewards_experience (progress_id, track, base, amount, total_after, key, cause)
    SELECT id, %(track)s, %(base)s, amount, total + amount, %(key)s, %(cause)s FROM change
    ON CONFLICT (key) DO NOTHING
    RETURNING *
), moved AS (
    UPDATE rewards_progress AS progress SET
        permanent_experience = CASE %(track)s WHEN 'PERMANENT' THEN total_after ELSE permanent_experience END,
        subscriber_experience = CASE %(track)s WHEN 'SUBSCRIBER' THEN total_after ELSE subscriber_experience END
    FROM posted WHERE progress.id = posted.progress_id
)
SELECT * FROM posted
"""

# Lock the progress of these users and let each gain on the permanent track, step by step: every gain grows at
# the rate of the badge that the gains before it have earned. A database without badges grows at 1.
# No row: one of the users has no progress row, and then nobody gains. Each row says what decides the cashback for
# that cost: the fractions of the badges as of after the gain and of the active modifiers, and the allowance, without
# which the subscriber's badge does not count.
GAIN_EXPERIENCE = """
WITH RECURSIVE wanted AS (
    SELECT user_id, base, key, place, row_number() OVER (PARTITION BY user_id ORDER BY place) AS step
    FROM unnest(%(users)s::bigint[], %(bases)s::bigint[], %(keys)s::text[])
        WITH ORDINALITY AS wanted (user_id, base, key, place)
), locked AS (
    SELECT id, user_id, permanent_experience, subscriber_experience
    FROM rewards_progress WHERE user_id = ANY(%(users)s)
    ORDER BY user_id FOR NO KEY UPDATE
), grown AS (
    SELECT user_id, 0::bigint AS step, 0::bigint AS amount, permanent_experience AS total_after
    FROM locked WHERE (SELECT count(*) FROM locked) = (SELECT count(DISTINCT user_id) FROM wanted)
    UNION ALL
    SELECT wanted.user_id, wanted.step, change.amount, grown.total_after + change.amount
    FROM grown
    JOIN wanted ON wanted.user_id = grown.user_id AND wanted.step = grown.step + 1
    CROSS JOIN LATERAL (
        SELECT floor(wanted.base * coalesce(
            (SELECT exp_growth_rate FROM rewards_badge_at('PERMANENT', grown.total_after)), 1
        ))::bigint AS amount
    ) AS change
), moved AS (
    UPDATE rewards_progress AS progress SET permanent_experience = total_after
    FROM (SELECT DISTINCT ON (user_id) user_id, total_after FROM grown ORDER BY user_id, step DESC) AS last
    WHERE progress.user_id = last.user_id
), posted AS (
    INSERT INTO rewards_experience (progress_id, track, base, amount, total_after, key, cause)
    SELECT locked.id, 'PERMANENT', wanted.base, grown.amount, grown.total_after, wanted.key, %(cause)s
    FROM wanted JOIN grown USING (user_id, step) JOIN locked USING (user_id)
    ORDER BY place
    RETURNING progress_id, key, total_after
)
SELECT posted.key, coalesce(permanent.credits_back_percent, 0), coalesce(subscriber.credits_back_percent, 0),
       ARRAY(
           SELECT value FROM rewards_modifier AS modifier
           WHERE modifier.user_id = locked.user_id AND modifier_type = 'BONUS_CREDITS_BACK'
             AND modifier.created_at <= statement_timestamp() AND modifier.expires_at > statement_timestamp()
       ),
       allowance.credits, allowance.starts_at, allowance.ends_at, allowance.resets_at, allowance.renews
FROM posted
JOIN locked ON locked.id = posted.progress_id
LEFT JOIN LATERAL rewards_badge_at('PERMANENT', posted.total_after) AS permanent ON true
LEFT JOIN LATERAL rewards_badge_at('SUBSCRIBER', locked.subscriber_experience) AS subscriber ON true
LEFT JOIN credits_allowance AS allowance ON allowance.user_id = locked.user_id
"""
