-- name: take
-- Takes a lease that is free, or the owner's, and returns its fencing number. A process that finds the lease taken
-- locks no row; it would have to wait for the holder's transactions.
INSERT INTO gateway_common_lease AS held (name, owner, expires_at)
SELECT %(name)s::text, %(owner)s::text, statement_timestamp() + %(seconds)s * interval '1 second'
WHERE NOT EXISTS (
    SELECT FROM gateway_common_lease
    WHERE name = %(name)s::text AND owner <> %(owner)s::text AND expires_at > statement_timestamp()
)
ON CONFLICT (name) DO UPDATE SET fence = excluded.fence, owner = excluded.owner, expires_at = excluded.expires_at
WHERE held.owner = excluded.owner OR held.expires_at <= statement_timestamp()
RETURNING fence

-- name: renew
-- Renews a lease that was not lost. The fencing number does not change, so a renewal does not wait for the holder's
-- own transactions.
UPDATE gateway_common_lease SET expires_at = statement_timestamp() + %(seconds)s * interval '1 second'
WHERE name = %(name)s AND fence = %(fence)s
RETURNING fence
