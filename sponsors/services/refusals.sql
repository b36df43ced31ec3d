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

-- name: store
-- Stores refused requests; a repeat of a stored one replaces its reason. Sorted by the key, as above.
INSERT INTO sponsors_refusedrequest AS stored (
    sponsor_id, user_id, chain_id, key, rule, policy, server_response, actions, credits, gas_price_wei, requests, refused_at
)
SELECT sponsor.id, refused.user_id, refused.chain_id, refused.key, refused.rule, refused.policy, refused.server_response, refused.actions,
       refused.credits, refused.gas_price_wei, refused.requests, %(now)s
FROM jsonb_to_recordset(%(rows)s::jsonb) AS refused (
    slug text, user_id bigint, chain_id bigint, key text, rule text, policy text, server_response text, actions jsonb, credits bigint,
    gas_price_wei numeric, requests integer
)
JOIN sponsors_sponsor AS sponsor ON sponsor.slug = refused.slug
ORDER BY sponsor.id, refused.key
ON CONFLICT (sponsor_id, key) DO UPDATE SET
    rule = excluded.rule, policy = excluded.policy, server_response = excluded.server_response,
    credits = excluded.credits, gas_price_wei = excluded.gas_price_wei,
    requests = least(stored.requests::bigint + excluded.requests, 2147483647), refused_at = excluded.refused_at
RETURNING stored.sponsor_id

-- name: trim
-- Deletes all but the newest refused requests of each sponsor. It passes over rows that another batch is changing, so
-- that the two cannot deadlock; a later batch deletes them.
DELETE FROM sponsors_refusedrequest WHERE id IN (
    SELECT old.id FROM unnest(%(sponsors)s::bigint[]) AS sponsor (id), LATERAL (
        SELECT each.id FROM sponsors_refusedrequest AS each WHERE each.sponsor_id = sponsor.id
        ORDER BY each.refused_at DESC, each.id DESC OFFSET %(most)s FOR UPDATE SKIP LOCKED
    ) AS old
) RETURNING id
