"""
The SQL that settles many holds at once: one statement per move, however many accounts it touches.

The habits of `credits.services.statements` hold here too, and two more:

- *Locks are taken in the order of ids*, holds first and accounts then, so that two of these never
  wait for each other.
- *A repeated key fails the whole statement* instead of being skipped, because the totals of one
  row's account build on the row before. What is behind these keys happens once with its hold; a
  caller who finds one taken settles one by one.
"""

# Close the holds that are open: capture what costs something, release what costs nothing; charge the
# accounts and drop what was held; post the entries. With `capped`, nobody pays more than was held. A hold
# names its entry before the entry exists (a check ties the two); the foreign key is verified at commit.
CLOSE_HOLDS = """
WITH due AS (
    SELECT hold.id, CASE WHEN %(capped)s THEN least(wanted.cost, hold.amount) ELSE wanted.cost END AS cost
    FROM credits_hold AS hold
    JOIN unnest(%(holds)s::bigint[], %(costs)s::bigint[]) AS wanted (hold_id, cost) ON wanted.hold_id = hold.id
    WHERE hold.status = 'HELD'
    ORDER BY hold.id FOR NO KEY UPDATE OF hold
), numbered AS (
    SELECT id, cost, CASE WHEN cost > 0 THEN nextval(pg_get_serial_sequence('credits_entry', 'id')) END AS entry_id
    FROM due
), closed AS (
    UPDATE credits_hold AS hold
    SET status = CASE WHEN cost > 0 THEN 'CAPTURED' ELSE 'RELEASED' END, captured_amount = nullif(cost, 0),
        entry_id = numbered.entry_id, closed_at = statement_timestamp()
    FROM numbered WHERE hold.id = numbered.id AND hold.status = 'HELD'
    RETURNING hold.id, hold.account_id, hold.amount, numbered.cost, hold.entry_id
), totals AS (
    SELECT account_id, sum(amount)::bigint AS amount, sum(cost)::bigint AS cost, count(entry_id) AS entries
    FROM closed GROUP BY account_id
), locked AS (
    SELECT account.id, balance, held - totals.amount AS held, version, totals.cost, totals.entries,
           user_id, subscriber_experience
    FROM credits_account AS account JOIN totals ON totals.account_id = account.id
    ORDER BY account.id FOR NO KEY UPDATE OF account
), charged AS (
    UPDATE credits_account AS account
    SET balance = locked.balance - locked.cost, held = locked.held, version = locked.version + locked.entries
    FROM locked WHERE account.id = locked.id
), posted AS (
    INSERT INTO credits_entry
        (id, account_id, amount, source, key, balance_before, balance_after, account_version, reason)
    SELECT entry_id, account_id, -closed.cost, %(source)s, 'hold:' || closed.id,
           balance - sum(closed.cost) OVER so_far + closed.cost, balance - sum(closed.cost) OVER so_far,
           version + row_number() OVER so_far, ''
    FROM closed JOIN locked ON locked.id = closed.account_id
    WHERE entry_id IS NOT NULL
    WINDOW so_far AS (PARTITION BY account_id ORDER BY closed.id)
    RETURNING *
)
SELECT posted.*, closed.id AS closed_hold_id, closed.account_id AS charged_account_id, user_id, subscriber_experience
FROM closed JOIN locked ON locked.id = closed.account_id LEFT JOIN posted ON posted.id = closed.entry_id
ORDER BY closed.id
"""

# Lock the accounts, insert the entries on top of the newest balances in the order they are given, then
# move each account to where its last entry ends.
POST_ENTRIES = """
WITH wanted AS (
    SELECT * FROM unnest(%(accounts)s::bigint[], %(credits)s::bigint[], %(keys)s::text[])
        WITH ORDINALITY AS wanted (account_id, credits, key, place)
), totals AS (
    SELECT account_id, sum(credits)::bigint AS credits, count(*) AS entries FROM wanted GROUP BY account_id
), locked AS (
    SELECT account.id, balance, version, totals.credits, totals.entries
    FROM credits_account AS account JOIN totals ON totals.account_id = account.id
    ORDER BY account.id FOR NO KEY UPDATE OF account
), moved AS (
    UPDATE credits_account AS account
    SET balance = locked.balance + locked.credits, version = locked.version + locked.entries
    FROM locked WHERE account.id = locked.id
)
INSERT INTO credits_entry
    (account_id, amount, source, key, balance_before, balance_after, account_version, reason)
SELECT account_id, wanted.credits, %(source)s, key,
       balance + sum(wanted.credits) OVER so_far - wanted.credits, balance + sum(wanted.credits) OVER so_far,
       version + row_number() OVER so_far, ''
FROM wanted JOIN locked ON locked.id = wanted.account_id
WINDOW so_far AS (PARTITION BY account_id ORDER BY place)
ORDER BY place
RETURNING id
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
            SELECT exp_growth_rate FROM credits_badge
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
INSERT INTO credits_experience (account_id, track, base, amount, total_after, key, cause)
SELECT account_id, 'PERMANENT', wanted.base, grown.amount, grown.total_after, wanted.key, %(cause)s
FROM wanted JOIN grown USING (account_id, step)
ORDER BY place
RETURNING key, total_after
"""
