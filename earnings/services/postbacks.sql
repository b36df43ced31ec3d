-- name: insert
-- Stores postbacks in their order; returns the new ones, and nothing for a repeat.
INSERT INTO earnings_postback (@names@)
SELECT @names@ FROM unnest(@arrays@) WITH ORDINALITY AS new (@names@, place)
ORDER BY place
ON CONFLICT DO NOTHING
RETURNING id, external_id, kind, user_id

-- name: mark
-- Marks the first of each pair of postbacks with different contents and the same keys. A reversal is unique by its
-- user, too.
UPDATE earnings_postback AS first SET is_conflicting = true, conflicted_at = %(at)s
FROM unnest(%(ids)s::text[], %(kinds)s::text[], %(users)s::bigint[], %(hashes)s::text[])
    AS again (external_id, kind, user_id, payload_hash)
WHERE first.network_id = %(network)s AND first.external_id = again.external_id AND first.kind = again.kind
  AND (first.kind <> 'REVERSAL' OR first.user_id IS NOT DISTINCT FROM again.user_id)
  AND first.payload_hash <> again.payload_hash
RETURNING first.external_id, first.kind
