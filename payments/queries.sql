-- name: counts
-- A snapshot for the gauges: Stripe's events and our operations that wait, with the age of the oldest in seconds, and
-- payments with a recent warning of fraud that were not returned in full.
SELECT event.*, operation.*, warning.*
FROM (SELECT count(*) FILTER (WHERE status = 'received'), count(*) FILTER (WHERE status = 'failed'),
             coalesce(greatest(0, extract(epoch FROM statement_timestamp() - min(received_at))), 0)::float
      FROM payments_stripeevent WHERE status IN ('received', 'failed')) AS event,
     (SELECT count(*), coalesce(greatest(0, extract(epoch FROM statement_timestamp() - min(created_at))), 0)::float
      FROM (SELECT created_at FROM payments_billingoperation WHERE status = 'pending'
            UNION ALL SELECT created_at FROM payments_refund WHERE status = 'pending') AS pending) AS operation,
     (SELECT count(*) FROM payments_payout
      WHERE fraud_warned_at > statement_timestamp() - interval '7 days'
        AND refunded_minor + disputed_minor < amount_minor + tax_minor + other_minor) AS warning
