-- name: counts
-- A snapshot for the gauges: messages that wait and the age of the oldest in seconds, those given up in the last day,
-- and endpoints that failed.
SELECT message.*, given_up.*, endpoint.*
FROM (SELECT count(*), coalesce(greatest(0, extract(epoch FROM statement_timestamp() - min(next_attempt_at))), 0)::float
      FROM webhooks_message JOIN webhooks_endpoint ON webhooks_endpoint.id = endpoint_id
      WHERE status = 'waiting' AND disabled_at IS NULL) AS message,
     (SELECT count(*) FROM webhooks_message
      WHERE status = 'given-up' AND finished_at > statement_timestamp() - interval '1 day') AS given_up,
     (SELECT count(*) FILTER (WHERE disabled_by IN ('gone', 'failing')),
             count(*) FILTER (WHERE disabled_at IS NULL AND failing_since IS NOT NULL)
      FROM webhooks_endpoint) AS endpoint
