-- name: to_contracts
-- The newest executed calls whose first action is a call of one of these contracts, among the newest calls of a chain.
-- In `execute(uint256 operation, address target, …)`, the target is the last 20 bytes of the second word.
SELECT call.id FROM (
    SELECT id, status, payload FROM relay_relaytransaction WHERE chain_id = %(chain)s ORDER BY id DESC LIMIT %(scanned)s
) AS call
WHERE call.status = @success@ AND substring(call.payload FOR 4) = '\x44c028fe'
  AND substring(call.payload FROM 49 FOR 20) = ANY(%(contracts)s::bytea[])
ORDER BY call.id DESC LIMIT %(limit)s
