-- name: is_paused(part)
-- Whether staff have paused a part of the service: its newest decision.
coalesce((SELECT is_paused FROM gateway_admin_pause WHERE name = @part@ ORDER BY id DESC LIMIT 1), false)
