-- name: contracts
-- A sponsor's credits and calls by the contract that was called. In `execute(uint256 operation, address target, …)`,
-- this reads the last byte of the operation and the last 20 bytes of the target. Operations 1 and 2 create a contract.
-- `executeBatch(uint256[],…)` is a batch; any other function is the profile's own.
SELECT CASE WHEN call.deploys_profile THEN 'new-profile'
            WHEN substring(call.payload FOR 4) = '\x31858452' THEN 'batch'
            WHEN substring(call.payload FOR 4) <> '\x44c028fe' OR octet_length(call.payload) < 68 THEN 'profile'
            WHEN get_byte(call.payload, 35) IN (1, 2) THEN 'deployment'
            ELSE '0x' || encode(substring(call.payload FROM 49 FOR 20), 'hex') END AS contract,
       sum(sponsored.counted_credits)::bigint AS credits, sum(sponsored.counted_calls)::bigint AS calls
FROM sponsors_policy AS policy
JOIN sponsors_policyversion AS version ON version.policy_id = policy.id
JOIN sponsors_sponsoredcall AS sponsored ON sponsored.version_id = version.id AND sponsored.accepted_at >= %(since)s
JOIN relay_relaytransaction AS call ON call.hold_id = sponsored.hold_id
WHERE policy.sponsor_id = %(sponsor)s
GROUP BY 1 ORDER BY credits DESC, contract LIMIT %(limit)s
