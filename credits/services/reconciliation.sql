-- name: find_differences
-- The rules across rows of the ledger that a row breaks: rule, account, row, expected and actual value.
WITH posted AS (
    SELECT account_id, count(*) AS entries, sum(amount) AS total FROM credits_entry GROUP BY account_id
), open_holds AS (
    SELECT account_id, sum(amount) AS total, count(*) AS holds
    FROM credits_hold WHERE status = 'HELD' GROUP BY account_id
), chain AS (
    SELECT id, account_id, account_version, balance_before,
           lag(account_version, 1, 0::bigint) OVER newest_last AS last_version,
           lag(balance_after, 1, 0::bigint) OVER newest_last AS last_after
    FROM credits_entry WINDOW newest_last AS (PARTITION BY account_id ORDER BY account_version)
)
SELECT 'balance is the sum of the entries', account.id, account.id, coalesce(posted.total, 0), account.balance
FROM credits_account AS account LEFT JOIN posted ON posted.account_id = account.id
WHERE account.balance <> coalesce(posted.total, 0)
UNION ALL
SELECT 'version is the number of entries', account.id, account.id, coalesce(posted.entries, 0), account.version
FROM credits_account AS account LEFT JOIN posted ON posted.account_id = account.id
WHERE account.version <> coalesce(posted.entries, 0)
UNION ALL
SELECT 'held is the sum of the open holds', account.id, account.id, coalesce(open_holds.total, 0), account.held
FROM credits_account AS account LEFT JOIN open_holds ON open_holds.account_id = account.id
WHERE account.held <> coalesce(open_holds.total, 0)
UNION ALL
SELECT 'open_holds is the number of open holds', account.id, account.id, coalesce(open_holds.holds, 0),
       account.open_holds
FROM credits_account AS account LEFT JOIN open_holds ON open_holds.account_id = account.id
WHERE account.open_holds <> coalesce(open_holds.holds, 0)
UNION ALL
SELECT 'paid spending is the sum of the holds of paid credits', account.id, account.id, coalesce(taken.total, 0),
       coalesce(spending.credits, 0)
FROM credits_account AS account
LEFT JOIN credits_paidspending AS spending ON spending.account_id = account.id
LEFT JOIN (
    SELECT account_id, sum(CASE WHEN status = 'HELD' THEN amount ELSE coalesce(captured_amount, 0) END) AS total
    FROM credits_hold WHERE paid_only GROUP BY account_id
) AS taken ON taken.account_id = account.id
WHERE coalesce(spending.credits, 0) <> coalesce(taken.total, 0)
UNION ALL
SELECT 'spent first credits are the charges since and what expired', home.account_id, home.account_id, taken.total, home.spent
FROM credits_homecredits AS home CROSS JOIN LATERAL (
    SELECT (
        coalesce((
            SELECT sum(captured_amount) FROM credits_hold AS hold
            JOIN credits_entry AS charge ON charge.id = hold.entry_id AND charge.account_id = home.account_id
            WHERE NOT hold.paid_only
        ), 0) - coalesce((
            SELECT sum(expiry.amount) FROM credits_entry AS lot
            JOIN credits_entry AS expiry
                ON expiry.account_id = lot.account_id AND expiry.source = 'CREDIT_EXPIRY'
                AND split_part(expiry.key, ':', 2) = lot.id::text
            WHERE lot.account_id = home.account_id AND lot.source = 'FIRST_CREDITS' AND lot.amount > 0
        ), 0)
    )::bigint AS total
) AS taken
WHERE home.spent <> taken.total
UNION ALL
SELECT 'an entry follows the version before it', account_id, id, last_version + 1, account_version
FROM chain WHERE account_version <> last_version + 1
UNION ALL
SELECT 'an entry starts where the one before it ended', account_id, id, last_after, balance_before
FROM chain WHERE balance_before <> last_after
UNION ALL
SELECT 'an entry has an account', account_id, id, account_id, NULL
FROM credits_entry AS entry WHERE NOT EXISTS (SELECT FROM credits_account WHERE id = entry.account_id)
UNION ALL
SELECT 'a hold has an account', account_id, id, account_id, NULL
FROM credits_hold AS hold WHERE NOT EXISTS (SELECT FROM credits_account WHERE id = hold.account_id)
UNION ALL
SELECT 'a captured hold is charged to its account by its entry', hold.account_id, hold.id,
       -hold.captured_amount, entry.amount
FROM credits_hold AS hold
LEFT JOIN credits_entry AS entry ON entry.id = hold.entry_id AND entry.account_id = hold.account_id
WHERE hold.status = 'CAPTURED' AND entry.amount IS DISTINCT FROM -hold.captured_amount
UNION ALL
SELECT 'a relay charge belongs to a captured hold', account_id, id, 0, amount
FROM credits_entry AS entry
WHERE source = 'RELAY_TRANSACTION' AND NOT EXISTS (SELECT FROM credits_hold WHERE entry_id = entry.id)
    AND NOT EXISTS (
        SELECT FROM credits_entry AS reversal
        WHERE reversal.key = 'reversal:' || entry.key AND reversal.account_id = entry.account_id
            AND reversal.amount = -entry.amount
    )
