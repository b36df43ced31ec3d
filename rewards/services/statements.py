# Lock the account, find the badge worn there, insert the entry by its key, move the total. A database
# without badges grows at 1. No row: the key is taken, or there is no account.
POST_EXPERIENCE = """
WITH locked AS (
    SELECT id, CASE %(track)s WHEN 'PERMANENT' THEN permanent_experience ELSE subscriber_experience END AS total
    FROM credits_account WHERE user_id = %(user)s FOR NO KEY UPDATE
), change AS (
    SELECT id, total, CASE
        WHEN %(base)s::bigint < 0 THEN greatest(%(base)s::bigint, -total)
        WHEN NOT %(grows)s::boolean THEN %(base)s::bigint
        ELSE floor(%(base)s::bigint * coalesce((
            SELECT exp_growth_rate FROM rewards_badge
            WHERE track = %(track)s AND exp_lower_bound <= total
              AND (exp_upper_bound IS NULL OR exp_upper_bound > total)
        ), 1))::bigint
    END AS amount
    FROM locked
), posted AS (
    INSERT INTO rewards_experience (account_id, track, base, amount, total_after, key, cause)
    SELECT id, %(track)s, %(base)s, amount, total + amount, %(key)s, %(cause)s FROM change
    ON CONFLICT (key) DO NOTHING
    RETURNING *
), moved AS (
    UPDATE credits_account AS account SET
        permanent_experience = CASE %(track)s WHEN 'PERMANENT' THEN total_after ELSE permanent_experience END,
        subscriber_experience = CASE %(track)s WHEN 'SUBSCRIBER' THEN total_after ELSE subscriber_experience END
    FROM posted WHERE account.id = posted.account_id
)
SELECT * FROM posted
"""


# Lock the accounts and let each gain on the permanent track, step by step: every gain grows at the rate of
# the badge that the gains before it have earned. A database without badges grows at 1.
GAIN_EXPERIENCE = """
WITH RECURSIVE wanted AS (
    SELECT account_id, base, key, place, row_number() OVER (PARTITION BY account_id ORDER BY place) AS step
    FROM unnest(%(accounts)s::bigint[], %(bases)s::bigint[], %(keys)s::text[])
        WITH ORDINALITY AS wanted (account_id, base, key, place)
), locked AS (
    SELECT id, permanent_experience FROM credits_account WHERE id = ANY(%(accounts)s)
    ORDER BY id FOR NO KEY UPDATE
), grown AS (
    SELECT id AS account_id, 0::bigint AS step, 0::bigint AS amount, permanent_experience AS total_after
    FROM locked
    UNION ALL
    SELECT wanted.account_id, wanted.step, change.amount, grown.total_after + change.amount
    FROM grown
    JOIN wanted ON wanted.account_id = grown.account_id AND wanted.step = grown.step + 1
    CROSS JOIN LATERAL (
        SELECT floor(wanted.base * coalesce((
            SELECT exp_growth_rate FROM rewards_badge
            WHERE track = 'PERMANENT' AND exp_lower_bound <= grown.total_after
              AND (exp_upper_bound IS NULL OR exp_upper_bound > grown.total_after)
        ), 1))::bigint AS amount
    ) AS change
), moved AS (
    UPDATE credits_account AS account SET permanent_experience = total_after
    FROM (
        SELECT DISTINCT ON (account_id) account_id, total_after FROM grown ORDER BY account_id, step DESC
    ) AS last
    WHERE account.id = last.account_id
)
INSERT INTO rewards_experience (account_id, track, base, amount, total_after, key, cause)
SELECT account_id, 'PERMANENT', wanted.base, grown.amount, grown.total_after, wanted.key, %(cause)s
FROM wanted JOIN grown USING (account_id, step)
ORDER BY place
RETURNING key, total_after
"""
