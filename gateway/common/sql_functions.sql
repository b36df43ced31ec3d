-- name: differing
-- The functions that are missing, or whose text or definition has another hash than their comment.
SELECT DISTINCT wanted.name
FROM unnest(%(names)s::text[], %(hashes)s::text[]) AS wanted (name, hash)
LEFT JOIN pg_proc AS made ON made.proname = wanted.name AND made.pronamespace = 'public'::regnamespace
WHERE made.oid IS NULL
   OR obj_description(made.oid, 'pg_proc') IS DISTINCT FROM md5(wanted.hash || pg_get_functiondef(made.oid))
