-- name: update
-- Stores the decisions about postbacks, one element of each array for a postback.
UPDATE earnings_postback AS postback
SET decided_at = statement_timestamp(), @assignments@
FROM unnest(%(ids)s::bigint[], @arrays@) AS new (id, @names@)
WHERE postback.id = new.id RETURNING postback.id
