-- name: rules
-- Prices of a credit that no request has added, except the first of each chain, and calls at a price that their chain
-- has never had.
SELECT 'a price of a credit was approved', price.credit_wei || ' wei on chain ' || price.chain_id,
       coalesce(terms ->> 'credit_wei' || ' wei on chain ' || (terms ->> 'chain_id'), 'nothing'),
       jsonb_build_object('credit price', price.id::text)
FROM relay_creditprice AS price
LEFT JOIN (
    SELECT made_id, payload -> 'values' AS terms FROM @carried_out@ AS approval WHERE kind = 'add_credit_price'
) AS approval ON approval.made_id = price.id::text
WHERE NOT price.is_first AND (price.credit_wei::text, price.chain_id::text)
    IS DISTINCT FROM (terms ->> 'credit_wei', terms ->> 'chain_id')
UNION ALL
SELECT 'a call has a price of its chain', call.credit_wei::text, 'a price of chain ' || call.chain_id,
       jsonb_build_object('relay transaction', min(call.id)::text)
FROM relay_relaytransaction AS call
LEFT JOIN relay_creditprice AS price ON price.chain_id = call.chain_id AND price.credit_wei = call.credit_wei
WHERE price.id IS NULL
GROUP BY call.chain_id, call.credit_wei
