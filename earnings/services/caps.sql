-- name: lock
-- Locks the rows of all scopes of a day in order. If a row is missing, nothing is locked or returned, because its
-- insert may wait for another transaction.
SELECT day.scope, day.credits FROM earnings_daily AS day
WHERE day.day = %(day)s AND day.scope = ANY(%(scopes)s::text[]) AND cardinality(%(scopes)s::text[]) = (
    SELECT count(*) FROM earnings_daily AS row WHERE row.day = %(day)s AND row.scope = ANY(%(scopes)s::text[])
)
ORDER BY day.scope FOR NO KEY UPDATE OF day

-- name: open
-- Inserts the day's rows of these scopes that do not exist yet.
INSERT INTO earnings_daily (day, scope, credits)
SELECT %(day)s::date, scope, 0 FROM unnest(%(scopes)s::text[]) AS scope ORDER BY scope
ON CONFLICT DO NOTHING RETURNING id

-- name: take
-- Adds credits to the rows of these scopes.
UPDATE earnings_daily SET credits = credits + %(taken)s
WHERE day = %(day)s AND scope = ANY(%(scopes)s::text[]) RETURNING scope
