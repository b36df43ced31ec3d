-- name: shares
-- The sponsor's share of each sponsored call, by the user's hold: the sponsor's hold, its percentage, and its hold of first
-- credits, if any.
SELECT call.hold_id, call.sponsor_hold_id, version.share_percent, given.hold_id
FROM sponsors_sponsoredcall AS call JOIN sponsors_policyversion AS version ON version.id = call.version_id
LEFT JOIN sponsors_firstcredits AS given ON given.call_id = call.id
WHERE call.hold_id = ANY(%(holds)s::bigint[])
