-- name: leaves(which)
-- Entries in the order of ids, each with the salts and hashes that the text of its leaf needs.
SELECT entry.id, entry.account_id, entry.account_version, entry.actor_id, entry.amount, entry.balance_after,
       entry.balance_before, entry.created_at, entry.key, entry.source, entry.reason,
       coalesce(owner.profile_address, 'sponsor:' || account.sponsor_id, ''), salted.salt,
       erased.profile_hash, erased.reason_hash,
       deletion.id IS NOT NULL
FROM credits_entry AS entry
LEFT JOIN credits_account AS account ON account.id = entry.account_id
LEFT JOIN users_user AS owner ON owner.id = account.user_id
LEFT JOIN credits_accountsalt AS salted ON salted.account_id = entry.account_id
LEFT JOIN credits_erasedentry AS erased ON erased.entry_id = entry.id
LEFT JOIN users_accountdeletion AS deletion ON deletion.user_id = account.user_id AND deletion.status = 'erased'
WHERE @which@ ORDER BY entry.id
