-- name: roots
-- The root that covers each entry, the entry's place among its leaves, and the seed of its tree.
SELECT wanted.id, array_position(tree.entry_ids, wanted.id) - 1, tree.seed, @root_columns@
FROM unnest(%(ids)s::bigint[]) AS wanted (id)
JOIN LATERAL (
    SELECT * FROM credits_root WHERE last_entry_id >= wanted.id ORDER BY last_entry_id, number LIMIT 1
) AS root ON true
JOIN credits_roottree AS tree ON tree.number = root.number

-- name: nodes
-- Hashes of trees, by root and place, in the requested order.
SELECT encode(substring(tree.nodes FROM wanted.place * 32 + 1 FOR 32), 'hex')
FROM unnest(%(roots)s::bigint[], %(places)s::integer[]) WITH ORDINALITY AS wanted (root, place, turn)
JOIN credits_roottree AS tree ON tree.number = wanted.root
ORDER BY wanted.turn
