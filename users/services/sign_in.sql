-- name: delete_surplus
-- Deletes a profile's open challenges that exceed the limit. Ranks challenges to keep: every client's newest before
-- any client's second, and likewise for sites.
DELETE FROM users_signinchallenge WHERE id IN (
    SELECT id FROM (
        SELECT id, issued_at,
               row_number() OVER (PARTITION BY site ORDER BY of_client, issued_at DESC, id DESC) AS of_site
        FROM (
            SELECT id, site, issued_at,
                   row_number() OVER (PARTITION BY client ORDER BY issued_at DESC, id DESC) AS of_client
            FROM users_signinchallenge
            WHERE profile_address = %(profile)s AND consumed_at IS NULL AND expires_at > %(now)s
        ) AS ranked
    ) AS shared
    ORDER BY of_site DESC, issued_at, id
    LIMIT %(count)s
)
RETURNING id
