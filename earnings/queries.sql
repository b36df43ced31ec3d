-- name: postback_counts
-- A snapshot of the postbacks for the gauges: held credits and their age, what waits for staff, refusals and conflicts
-- of the last 24 hours, and the share of today's ceiling that is used.
SELECT earning.*, open.*, recent.*, (SELECT count(*) FROM earnings_postback
        WHERE conflicted_at >= statement_timestamp() - interval '24 hours'),
    coalesce((SELECT credits FROM earnings_daily
        WHERE day = (statement_timestamp() AT TIME ZONE 'UTC')::date AND scope = ''), 0)::float / %(ceiling)s
FROM (SELECT count(*), coalesce(sum(held.credits), 0)::bigint,
             coalesce(greatest(0, extract(epoch FROM statement_timestamp() -
                 min(held.available_at) FILTER (WHERE network.is_enabled))), 0)::float,
             count(*) FILTER (WHERE held.available_at IS NULL)
      FROM earnings_postback AS held JOIN earnings_adnetwork AS network ON network.id = held.network_id
      WHERE held.state = 'HELD') AS earning,
     (SELECT count(*) FILTER (WHERE state = 'UNASSIGNED'),
             count(*) FILTER (WHERE kind = 'REVERSAL' AND state = 'RECEIVED'
                 AND received_at < statement_timestamp() - interval '24 hours')
      FROM earnings_postback WHERE state IN ('RECEIVED', 'UNASSIGNED')) AS open,
     (SELECT count(*) FILTER (WHERE state = 'REFUSED')
      FROM earnings_postback WHERE received_at >= statement_timestamp() - interval '24 hours') AS recent

-- name: typical_credits
-- The median credits of each network's newest earnings; of fewer than a number of earnings, a median tells nothing.
SELECT network_id, percentile_cont(0.5) WITHIN GROUP (ORDER BY credits)::float
FROM (SELECT network_id, credits, kind, state FROM earnings_postback ORDER BY id DESC LIMIT %(newest)s) AS newest
WHERE kind = 'CREDIT' AND state = 'AVAILABLE' AND credits > 0
GROUP BY network_id HAVING count(*) >= %(fewest)s
