"""
The SQL that moves credits and experience: one statement per move. Many holds are closed at once
by `credits.services.bulk_statements`.

A statement is all or nothing by itself, so a row and the running total that it
explains never part, whatever the caller's transaction does. Four habits keep
concurrent moves right in READ COMMITTED, without a read in Python before a write:

- *The row that says "once" comes first.* A unique key (`ON CONFLICT DO NOTHING`) or
  a compare-and-set on `status` yields the row, and everything after it is driven by
  that row: where it yields nothing, nothing moves.
- *Totals are computed by the database from the row it has locked.* PostgreSQL waits
  for a competing update and then evaluates `SET` and `WHERE` again on the newest version.
- *Where a total falls, it is read under `FOR NO KEY UPDATE` first.* PostgreSQL tests CHECKs on the
  version its snapshot shows before it looks for a newer one, so `held - x` could be refused on stale
  numbers when the hold itself has just been raised.
- *Lock order is hold, then account.* A statement that locks an account waits for
  nothing but a competing insert of its own unique key.
"""

from credits.models import CreditHold
from gateway.common import sql

# Insert the hold by its key, then set the credits aside where the account affords them. No row: the
# key is taken, or there is no account. `account_balance` is null: the account does not afford the hold.
PLACE_HOLD = f"""
WITH placed AS (
    INSERT INTO credits_hold (account_id, key, content, amount, status)
    SELECT id, %(key)s, %(content)s, %(credits)s, 'HELD' FROM credits_account WHERE user_id = %(user)s
    ON CONFLICT (key) DO NOTHING
    RETURNING *
), reserved AS (
    UPDATE credits_account AS account SET held = account.held + placed.amount
    FROM placed
    WHERE account.id = placed.account_id
      AND account.balance - account.held - placed.amount >= -(%(debt_limit)s)
    RETURNING account.balance
)
SELECT reserved.balance AS account_balance, {sql.columns(CreditHold, "placed")}
FROM placed LEFT JOIN reserved ON true
"""  # noqa: S608 (names of our own columns)

# Take back a hold that its account did not afford; nothing was set aside for it.
WITHDRAW_HOLD = """
DELETE FROM credits_hold AS hold USING credits_account AS account
WHERE hold.id = %(hold)s AND account.id = hold.account_id
RETURNING account.balance - account.held
"""

# Set aside the difference to a larger amount, then write the amount down. The caller has locked the
# hold in a statement before this one and found it open, so what is seen of it here is the newest.
RAISE_HOLD = """
WITH reserved AS (
    UPDATE credits_account AS account SET held = account.held + %(credits)s - hold.amount
    FROM credits_hold AS hold
    WHERE hold.id = %(hold)s AND account.id = hold.account_id
      AND account.balance - account.held - (%(credits)s - hold.amount) >= -(%(debt_limit)s)
    RETURNING hold.id
)
UPDATE credits_hold AS hold SET amount = %(credits)s FROM reserved WHERE hold.id = reserved.id
RETURNING hold.amount
"""

# Lock the account, insert the entry by its key on top of the newest balance, then move the account to
# where the entry ends. No row: the key is taken, or there is no account.
POST_ENTRY = """
WITH locked AS (
    SELECT id, balance, version FROM credits_account WHERE user_id = %(user)s FOR NO KEY UPDATE
), posted AS (
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
"""

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
            SELECT exp_growth_rate FROM credits_badge
            WHERE track = %(track)s AND exp_lower_bound <= total
              AND (exp_upper_bound IS NULL OR exp_upper_bound > total)
        ), 1))::bigint
    END AS amount
    FROM locked
), posted AS (
    INSERT INTO credits_experience (account_id, track, base, amount, total_after, key, cause)
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

# One row per user, written over. A period paid for late must not hide the one after it: the newer start wins.
SET_ALLOWANCE = """
INSERT INTO credits_allowance AS current (user_id, credits, starts_at, ends_at, resets_at, renews)
VALUES (%(user)s, %(credits)s, %(starts_at)s, %(ends_at)s, %(resets_at)s, %(renews)s)
ON CONFLICT (user_id) DO UPDATE
SET credits = excluded.credits, starts_at = excluded.starts_at, ends_at = excluded.ends_at,
    resets_at = excluded.resets_at, renews = excluded.renews
WHERE current.starts_at <= excluded.starts_at
RETURNING id
"""
