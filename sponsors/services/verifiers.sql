-- name: failed
-- Counts a failure of a sponsor's server. The third one in a row announces the outage, once: a later failure announces
-- only an outage that was not, because the last announcement was too recent.
UPDATE sponsors_verifier AS verifier SET
    failures = verifier.failures + 1, fault = %(fault)s,
    failing_since = coalesce(verifier.failing_since, %(now)s),
    announced_at = CASE
        WHEN verifier.failures >= 2
             AND coalesce(verifier.announced_at < verifier.failing_since, true)
             AND coalesce(verifier.announced_at < %(quiet_since)s, true) THEN %(now)s
        ELSE verifier.announced_at END
WHERE verifier.id = %(verifier)s RETURNING verifier.announced_at
