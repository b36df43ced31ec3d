-- The SQL that moves credits.
--
-- A statement is atomic by itself, so a row and the running total that it explains always change together, whatever
-- the caller's transaction does. These rules keep concurrent moves correct in READ COMMITTED, without a read in Python
-- before a write:
--
-- - *The row that guarantees "once" comes first.* A unique key (`ON CONFLICT DO NOTHING`) or a compare-and-set on
--   `status` yields the row, and everything after it depends on that row: if it yields nothing, nothing moves.
-- - *Totals are computed by the database from the row it has locked.* PostgreSQL waits for a competing update and then
--   evaluates `SET` and `WHERE` again on the newest version.
-- - *A total is read under `FOR NO KEY UPDATE` before it decreases.* PostgreSQL tests CHECKs on the row version in its
--   snapshot before it looks for a newer one, so `held - x` could be refused because of stale numbers if the hold has
--   just been raised.
-- - *Lock order is hold, then account*, each in the order of ids, so that two statements never wait for each other;
--   then the day's unbacked credits. Accounts of users come before those of sponsors. A statement that locks an
--   account waits for nothing but a competing insert of its own unique key, or for that day.
--
-- Closing takes any number of holds; a single one is a batch of one. There are two kinds of statements for posting,
-- which treat a repeated key differently. `post_entry` returns no row for it, and its caller looks up the first
-- entry. In `post_wanted`, each entry of an account builds on the one before, so none can be left out, and a
-- repeated key fails the whole statement. Its keys are never repeated, because each belongs to one closing or
-- reopening of a hold, or to a postback that was stored in the same transaction.

-- part: entry_of_locked
-- Insert the entry with its key on top of the newest balance of the account `locked`, then update the account to the
-- entry's balance. Returns no row if the key was used or there is no account.
, posted AS (
    INSERT INTO credits_entry
        (account_id, amount, source, key, balance_before, balance_after, account_version, actor_id, reason)
    SELECT id, %(credits)s, %(source)s, %(key)s, balance, balance + %(credits)s, version + 1,
           %(actor)s::bigint, %(reason)s
    FROM locked
    ON CONFLICT (key) DO NOTHING
    RETURNING *
), moved AS (
    UPDATE credits_account AS account SET balance = posted.balance_after, version = posted.account_version
    FROM posted WHERE account.id = posted.account_id
)
SELECT * FROM posted

-- name: open_accounts
-- Open an empty account for each user without one.
INSERT INTO credits_account (user_id, balance, held, open_holds, version)
SELECT unnest(%(users)s::bigint[]), 0, 0, 0, 0 ON CONFLICT DO NOTHING RETURNING id

-- name: post_entry
-- Lock the account of a user, and post an entry to it.
WITH locked AS (
    SELECT id, balance, version FROM credits_account WHERE user_id = %(owner)s FOR NO KEY UPDATE
)@entry_of_locked@

-- name: post_to_sponsor
-- Lock the account of a sponsor, and post an entry to it.
WITH locked AS (
    SELECT id, balance, version FROM credits_account WHERE sponsor_id = %(owner)s FOR NO KEY UPDATE
)@entry_of_locked@

-- name: set_allowance
-- Set a user's allowance, which is one row. The caller chooses the period, so that a late payment does not replace a
-- later one.
INSERT INTO credits_allowance (user_id, credits, starts_at, ends_at, resets_at, renews)
VALUES (%(user)s, %(credits)s, %(starts_at)s, %(ends_at)s, %(resets_at)s, %(renews)s)
ON CONFLICT (user_id) DO UPDATE
SET credits = excluded.credits, starts_at = excluded.starts_at, ends_at = excluded.ends_at,
    resets_at = excluded.resets_at, renews = excluded.renews
RETURNING id

-- name: close_holds
-- Close the open holds: capture those with a cost and release the others; charge the accounts, reduce the held
-- credits, post the entries. A charge never exceeds its hold. Holds of first credits have their own source. A hold
-- references its entry before the entry exists (a CHECK requires it); the foreign key is verified at commit. Charges
-- spend what is left of the account's first credits, except those of `paid_only` holds.
WITH due AS (
    SELECT hold.id, least(wanted.cost, hold.amount) AS cost
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
    RETURNING hold.id, hold.account_id, hold.amount, numbered.cost, hold.entry_id, hold.key LIKE 'first:%%' AS is_first,
              CASE WHEN hold.paid_only THEN 0 ELSE numbered.cost END AS of_given,
              'hold:' || hold.id || coalesce(':' || nullif(hold.reopenings, 0), '') AS key
), totals AS (
    SELECT account_id, sum(amount)::bigint AS amount, sum(cost)::bigint AS cost, count(entry_id) AS entries,
           count(*)::integer AS holds
    FROM closed GROUP BY account_id
), locked AS (
    SELECT account.id, balance, held - totals.amount AS held, open_holds - totals.holds AS open_holds, version,
           totals.cost, totals.entries, user_id
    FROM credits_account AS account JOIN totals ON totals.account_id = account.id
    ORDER BY account.user_id IS NULL, account.id FOR NO KEY UPDATE OF account
), charged AS (
    UPDATE credits_account AS account
    SET balance = locked.balance - locked.cost, held = locked.held, open_holds = locked.open_holds,
        version = locked.version + locked.entries
    FROM locked WHERE account.id = locked.id
), spent AS (
    -- Joined to the locked accounts, so that the account comes first in the order of locks.
    UPDATE credits_homecredits AS home SET spent = home.spent + given.cost
    FROM locked JOIN (SELECT account_id, sum(of_given)::bigint AS cost FROM closed GROUP BY 1) AS given
        ON given.account_id = locked.id
    WHERE home.account_id = locked.id
    RETURNING home.account_id, home.credits - home.spent + given.cost AS left_over
), posted AS (
    INSERT INTO credits_entry
        (id, account_id, amount, source, key, balance_before, balance_after, account_version, reason)
    SELECT entry_id, account_id, -closed.cost, CASE WHEN is_first THEN 'FIRST_CREDITS' ELSE %(source)s END, closed.key,
           balance - sum(closed.cost) OVER so_far + closed.cost, balance - sum(closed.cost) OVER so_far,
           version + row_number() OVER so_far, ''
    FROM closed JOIN locked ON locked.id = closed.account_id
    WHERE entry_id IS NOT NULL
    WINDOW so_far AS (PARTITION BY account_id ORDER BY closed.id)
)
SELECT closed.id, user_id, closed.cost, CASE WHEN entry_id IS NOT NULL THEN closed.key END,
       least(of_given, greatest(0, coalesce(left_over, 0) - sum(of_given) OVER so_far + of_given))::bigint
FROM closed JOIN locked ON locked.id = closed.account_id LEFT JOIN spent ON spent.account_id = closed.account_id
WINDOW so_far AS (PARTITION BY closed.account_id ORDER BY closed.id)
ORDER BY closed.id

-- name: reopen_holds
-- Reopen closed holds: hold their credits again, even into debt, and reverse the charge by an entry. The key of the
-- next charge contains the number of reopenings. What the charge took of first credits is left again.
WITH due AS (
    SELECT hold.id, hold.account_id, hold.amount, hold.captured_amount, hold.entry_id, hold.paid_only
    FROM credits_hold AS hold WHERE hold.id = ANY(%(holds)s::bigint[]) AND hold.status <> 'HELD'
    ORDER BY hold.id FOR NO KEY UPDATE
), reopened AS (
    UPDATE credits_hold AS hold
    SET status = 'HELD', captured_amount = NULL, entry_id = NULL, closed_at = NULL, reopenings = hold.reopenings + 1
    FROM due LEFT JOIN credits_entry AS entry ON entry.id = due.entry_id
    WHERE hold.id = due.id AND hold.status <> 'HELD'
    RETURNING due.id, due.account_id, due.amount, due.captured_amount, entry.key, due.paid_only
), totals AS (
    SELECT account_id, sum(amount)::bigint AS amount, coalesce(sum(captured_amount), 0)::bigint AS captured,
           count(key) AS entries, count(*)::integer AS holds
    FROM reopened GROUP BY account_id
), locked AS (
    SELECT account.id, balance, held, open_holds, version, user_id, totals.*
    FROM credits_account AS account JOIN totals ON totals.account_id = account.id
    ORDER BY account.user_id IS NULL, account.id FOR NO KEY UPDATE OF account
), moved AS (
    UPDATE credits_account AS account
    SET balance = locked.balance + captured, held = locked.held + amount,
        open_holds = locked.open_holds + holds, version = locked.version + entries
    FROM locked WHERE account.id = locked.id
), unspent AS (
    UPDATE credits_homecredits AS home SET spent = home.spent - given.captured
    FROM locked JOIN (
        SELECT account_id, sum(captured_amount)::bigint AS captured FROM reopened
        WHERE key IS NOT NULL AND NOT paid_only GROUP BY 1
    ) AS given ON given.account_id = locked.id
    WHERE home.account_id = locked.id
), posted AS (
    INSERT INTO credits_entry
        (account_id, amount, source, key, balance_before, balance_after, account_version, reason)
    SELECT account_id, captured_amount, %(source)s, 'reversal:' || key,
           balance + sum(captured_amount) OVER so_far - captured_amount,
           balance + sum(captured_amount) OVER so_far, version + row_number() OVER so_far, ''
    FROM reopened JOIN locked USING (account_id)
    WHERE key IS NOT NULL
    WINDOW so_far AS (PARTITION BY account_id ORDER BY reopened.id)
)
SELECT reopened.id, user_id, key FROM reopened JOIN locked USING (account_id) ORDER BY reopened.id

-- part: post_wanted
-- Posts the rows of the CTE `wanted (account_id, credits, source, key, place)`: lock the accounts, insert the entries
-- on top of the newest balances in the order of `place`, then update each account to the balance of its last entry.
, totals AS (
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
SELECT account_id, wanted.credits, source, key,
       balance + sum(wanted.credits) OVER so_far - wanted.credits, balance + sum(wanted.credits) OVER so_far,
       version + row_number() OVER so_far, ''
FROM wanted JOIN locked ON locked.id = wanted.account_id
WINDOW so_far AS (PARTITION BY account_id ORDER BY place)
ORDER BY place
RETURNING id, key

-- name: post_entries
-- Post entries of many users in order; all of them have accounts.
WITH wanted AS (
    SELECT account.id AS account_id, credits, source, key, place
    FROM unnest(%(users)s::bigint[], %(credits)s::bigint[], %(sources)s::text[], %(keys)s::text[])
        WITH ORDINALITY AS wanted (user_id, credits, source, key, place)
    JOIN credits_account AS account USING (user_id)
)@post_wanted@

-- name: expire
-- Expire credits of the rows (account, version, held, credits, key), but only if the account has not changed since it
-- was read: a use or a hold could have taken the same credits in between. Expired first credits count as spent.
WITH wanted AS (
    SELECT * FROM unnest(%(accounts)s::bigint[], %(versions)s::bigint[], %(held)s::bigint[], %(credits)s::bigint[],
                         %(keys)s::text[]) WITH ORDINALITY AS one (account_id, version, held, credits, key, place)
), totals AS (
    SELECT account_id, version, held, sum(credits)::bigint AS credits, count(*) AS entries
    FROM wanted GROUP BY 1, 2, 3
), locked AS (
    SELECT account.id, account.balance, account.version, totals.credits, totals.entries
    FROM credits_account AS account JOIN totals ON totals.account_id = account.id
    WHERE account.version = totals.version AND account.held = totals.held
    ORDER BY account.id FOR NO KEY UPDATE OF account
), moved AS (
    UPDATE credits_account AS account
    SET balance = locked.balance - locked.credits, version = locked.version + locked.entries
    FROM locked WHERE account.id = locked.id
), spent AS (
    UPDATE credits_homecredits AS home SET spent = home.spent + wanted.credits
    FROM wanted
    JOIN locked ON locked.id = wanted.account_id
    JOIN credits_entry AS lot ON lot.id = split_part(wanted.key, ':', 2)::bigint AND lot.source = 'FIRST_CREDITS'
    WHERE home.account_id = wanted.account_id
)
INSERT INTO credits_entry
    (account_id, amount, source, key, balance_before, balance_after, account_version, reason)
SELECT account_id, -wanted.credits, 'CREDIT_EXPIRY', key,
       balance - sum(wanted.credits) OVER so_far + wanted.credits, balance - sum(wanted.credits) OVER so_far,
       locked.version + row_number() OVER so_far, ''
FROM wanted JOIN locked ON locked.id = wanted.account_id
WINDOW so_far AS (PARTITION BY account_id ORDER BY place)
RETURNING id

-- name: take_over_debt
-- Moves the debt of an old account to a new one by a pair of entries, after which the old balance is zero. The keys
-- name the old account's version, so that a debt is moved once. Returns no row if nothing is owed, or if the new
-- account is being deleted. The lock on its user makes a deletion wait until the debt has moved.
WITH successor AS (
    SELECT FROM users_user WHERE is_active AND id = (SELECT user_id FROM credits_account WHERE id = %(new)s) FOR SHARE
), locked AS (
    SELECT id, balance, version FROM credits_account
    WHERE id IN (%(old)s, %(new)s) AND EXISTS (SELECT FROM successor) ORDER BY id FOR NO KEY UPDATE
), owed AS (
    SELECT -balance AS credits, 'debt:' || id || ':' || version + 1 AS key
    FROM locked WHERE id = %(old)s AND balance < 0
), moves AS (
    SELECT id, balance, version, CASE id WHEN %(old)s THEN credits ELSE -credits END AS credits,
           key || CASE id WHEN %(old)s THEN ':from' ELSE ':to' END AS key
    FROM locked, owed
), moved AS (
    UPDATE credits_account AS account
    SET balance = moves.balance + moves.credits, version = moves.version + 1
    FROM moves WHERE account.id = moves.id
)
INSERT INTO credits_entry
    (account_id, amount, source, key, balance_before, balance_after, account_version, reason)
SELECT id, credits, %(source)s, key, balance, balance + credits, version + 1,
       CASE id WHEN %(old)s THEN '' ELSE %(reason)s END
FROM moves ORDER BY id
RETURNING id
