-- name: writers
-- The transactions that write entries. Each holds this lock from before its ids are assigned until it ends.
SELECT virtualtransaction FROM pg_locks
WHERE locktype = 'relation' AND relation = 'credits_entry'::regclass AND mode = 'RowExclusiveLock' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND pid <> pg_backend_pid()

-- name: salt_accounts
-- Gives a salt to each account with new entries, from PostgreSQL's cryptographic random source.
INSERT INTO credits_accountsalt (account_id, salt)
SELECT DISTINCT account.id, uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
FROM credits_entry AS entry JOIN credits_account AS account ON account.id = entry.account_id
WHERE entry.id > %(after)s AND entry.id <= %(upto)s
ON CONFLICT (account_id) DO NOTHING
RETURNING account_id

-- name: keep_tree
-- Stores the tree of a root. In SQL, because Django would encode the hashes as text several times.
INSERT INTO credits_roottree (number, seed, entry_ids, nodes)
VALUES (%(root)s, %(seed)s, %(ids)s::bigint[], %(nodes)s)
RETURNING number
