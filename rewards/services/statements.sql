-- The SQL of experience and cashback: a total changes together with the entry that explains it.
--
-- The rules of `credits/services/statements.sql` apply here too. `post_experience` returns no row for a repeated key; in
-- `gain_experience` and `post_changes` each total builds on the one before, so a repeated key fails the whole statement.

-- name: open_progress
-- Create an empty progress row for each user without one.
INSERT INTO rewards_progress (user_id) SELECT unnest(%(users)s::bigint[]) ON CONFLICT DO NOTHING RETURNING id

-- name: post_experience
-- Lock the progress row, apply the growth rate of the badge at its total, insert the entry by its key, update the
-- total. Without badges, the rate is 1. Returns no row if the key was used or the user has no progress row.
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

-- name: gain_experience
-- Lock the progress rows and post each gain on the permanent track in order; the growth rate is that of the badge
-- earned by the gains before it, and 1 without badges. No row: one of the users has no progress row, and then nothing
-- is posted. Each row has what determines the cashback of that cost: the fractions of the badges after the gain and of
-- the active modifiers, and whether an allowance runs, without which the subscriber badge does not count.
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
       @period_runs@
FROM posted
JOIN locked ON locked.id = posted.progress_id
LEFT JOIN LATERAL rewards_badge_at('PERMANENT', posted.total_after) AS permanent ON true
LEFT JOIN LATERAL rewards_badge_at('SUBSCRIBER', locked.subscriber_experience) AS subscriber ON true
LEFT JOIN credits_allowance AS allowance ON allowance.user_id = locked.user_id

-- name: post_changes
-- Post changes of permanent experience in order; the caller's transaction has locked the progress rows and computed
-- the amounts.
WITH wanted AS (
    SELECT progress.id, permanent_experience, base, amount, key, cause, place,
           sum(amount) OVER (PARTITION BY progress.id ORDER BY place) AS so_far
    FROM unnest(%(users)s::bigint[], %(bases)s::bigint[], %(amounts)s::bigint[], %(keys)s::text[], %(causes)s::text[])
        WITH ORDINALITY AS wanted (user_id, base, amount, key, cause, place)
    JOIN rewards_progress AS progress USING (user_id)
), moved AS (
    UPDATE rewards_progress AS progress SET permanent_experience = progress.permanent_experience + total
    FROM (SELECT id, sum(amount)::bigint AS total FROM wanted GROUP BY id) AS change WHERE progress.id = change.id
)
INSERT INTO rewards_experience (progress_id, track, base, amount, total_after, key, cause)
SELECT id, 'PERMANENT', base, amount, permanent_experience + so_far, key, cause FROM wanted ORDER BY place
RETURNING id

-- name: add_cashback
-- Add cashback, or its reversal, in order to the remainder of earlier cashback; what is below a whole credit becomes
-- the new remainder. Returns the whole credits to post, as (user, credits, key) in order. A missing progress row
-- yields nothing; `gain_experience` ensures that it exists.
WITH exact AS (
    SELECT * FROM unnest(%(users)s::bigint[], %(parts)s::bigint[], %(keys)s::text[])
        WITH ORDINALITY AS exact (user_id, parts, key, place)
), progress AS (
    SELECT id, user_id, cashback_remainder FROM rewards_progress WHERE user_id = ANY(%(users)s)
    ORDER BY user_id FOR NO KEY UPDATE
), due AS (
    SELECT progress.id AS progress_id, user_id, parts, key, place,
           cashback_remainder + sum(parts) OVER so_far AS after
    FROM exact JOIN progress USING (user_id)
    WINDOW so_far AS (PARTITION BY user_id ORDER BY place)
), whole AS (
    SELECT *, (floor(after / @credit_parts@) - floor((after - parts) / @credit_parts@))::bigint AS credits,
           (after - floor(after / @credit_parts@) * @credit_parts@)::smallint AS remainder
    FROM due
), explained AS (
    INSERT INTO rewards_cashback (progress_id, amount, credits, remainder_after, key)
    SELECT progress_id, parts, credits, remainder, key FROM whole ORDER BY place
), carried AS (
    UPDATE rewards_progress AS progress SET cashback_remainder = remainder
    FROM (SELECT DISTINCT ON (progress_id) progress_id, remainder FROM whole ORDER BY progress_id, place DESC) AS last
    WHERE progress.id = progress_id
)
SELECT user_id, credits, key FROM whole WHERE credits <> 0 ORDER BY place

-- name: cashback_rules
-- The rules of cashback in the nightly reconciliation: each entry follows from the one before it, and the remainder is
-- that of the last entry.
SELECT 'cashback makes whole credits of what is due', account.id, chain.id,
       (chain.before + chain.amount - chain.remainder_after) / @credit_parts@, chain.credits
FROM (
    SELECT *, lag(remainder_after, 1, 0::smallint) OVER (PARTITION BY progress_id ORDER BY id) AS before
    FROM rewards_cashback
) AS chain
JOIN rewards_progress AS progress ON progress.id = chain.progress_id
JOIN credits_account AS account ON account.user_id = progress.user_id
WHERE chain.before + chain.amount <> chain.credits * @credit_parts@ + chain.remainder_after
UNION ALL
SELECT 'the cashback remainder is what the last entry left', account.id, progress.id, coalesce(last.remainder_after, 0),
       progress.cashback_remainder
FROM rewards_progress AS progress
JOIN credits_account AS account ON account.user_id = progress.user_id
LEFT JOIN (
    SELECT DISTINCT ON (progress_id) progress_id, remainder_after FROM rewards_cashback ORDER BY progress_id, id DESC
) AS last ON last.progress_id = progress.id
WHERE progress.cashback_remainder <> coalesce(last.remainder_after, 0)
