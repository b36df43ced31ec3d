-- name: debt_terms
-- The debt limit of each user, given the limit of the user's badges, and what the service still lends today.
SELECT credits_debt_limit(account.id, wanted.debt), greatest(0, coalesce((
    SELECT credits FROM credits_unbackedceiling ORDER BY id DESC LIMIT 1
), 0) - coalesce((
    SELECT debt + check_ins FROM credits_unbackedday WHERE day = (statement_timestamp() AT TIME ZONE 'UTC')::date
), 0))
FROM unnest(%(users)s::bigint[], %(debts)s::bigint[]) WITH ORDINALITY AS wanted (user_id, debt, place)
LEFT JOIN credits_account AS account ON account.user_id = wanted.user_id
ORDER BY place

-- name: has_earned
-- Whether a user got credits from payments or earnings that were not all taken back. For the many users without
-- reversals, this reads one entry and computes no sum. Sources are literals, because PostgreSQL cannot match a
-- prepared statement's parameters with the partial index.
SELECT EXISTS (SELECT FROM credits_entry WHERE account_id = account.id AND source IN (@proofs@))
       AND (NOT EXISTS (SELECT FROM credits_entry
                        WHERE account_id = account.id AND source IN (@disproofs@))
            OR (SELECT sum(amount) FROM credits_entry
                WHERE account_id = account.id AND source IN (@both@)) > 0)
FROM credits_account AS account WHERE user_id = %(user)s

-- name: unbacked_today
-- The credits that the service gave today without a payment or an earning, and their ceiling.
SELECT coalesce(day.debt, 0), coalesce(day.check_ins, 0),
       coalesce((SELECT credits FROM credits_unbackedceiling ORDER BY id DESC LIMIT 1), 0)
FROM (SELECT) AS always
LEFT JOIN credits_unbackedday AS day ON day.day = (statement_timestamp() AT TIME ZONE 'UTC')::date

-- name: counts
-- A snapshot of the ledger for the gauges: accounts and their sums, open holds and the age of the oldest in seconds.
SELECT account.*, hold.*
FROM (SELECT count(*), coalesce(sum(balance) FILTER (WHERE balance > 0), 0)::bigint,
             coalesce(-sum(balance) FILTER (WHERE balance < 0), 0)::bigint, coalesce(sum(held), 0)::bigint
      FROM credits_account) AS account,
     (SELECT count(*), coalesce(sum(amount), 0)::bigint,
             coalesce(greatest(0, extract(epoch FROM statement_timestamp() - min(created_at))), 0)::float
      FROM credits_hold WHERE status = 'HELD') AS hold

-- name: period_runs(now)
-- Whether the period of `credits_allowance AS allowance` runs: `PaidPeriod.runs_at` in SQL.
(allowance.starts_at <= @now@
    AND @now@ < allowance.ends_at + CASE WHEN allowance.renews THEN interval '@grace@' ELSE interval '0' END)
