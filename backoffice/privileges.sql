-- name: grants
-- Lets the role read and write the rows of every table, and nothing else. `_withheld` takes some of it back.
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {role};
REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM {role};
GRANT USAGE ON SCHEMA public TO {role};
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}

-- name: all_columns_but
-- Lets the role update only these columns of a table.
REVOKE UPDATE ON {table} FROM {role};
GRANT UPDATE ({columns}) ON {table} TO {role}

-- name: other_columns
-- The columns of a table except those that are given.
SELECT attname FROM pg_attribute
WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attname <> ALL(%s)
