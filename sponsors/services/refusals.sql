-- name: count
-- Adds refusals to the counts of a day. Sorted by the key, so that two batches lock rows in the same order and cannot
-- deadlock.
INSERT INTO sponsors_refusalcount AS counted (sponsor_id, day, rule, requests)
SELECT sponsor.id, %(day)s, refused.rule, refused.requests
FROM jsonb_to_recordset(%(rows)s::jsonb) AS refused (slug text, rule text, requests bigint)
JOIN sponsors_sponsor AS sponsor ON sponsor.slug = refused.slug
ORDER BY sponsor.id, refused.rule
ON CONFLICT (sponsor_id, day, rule) DO UPDATE SET requests = counted.requests + excluded.requests
RETURNING counted.id
