-- name: settings
-- The initial settings of a session of a role. Those for this database override its general ones.
WITH own AS (
    SELECT DISTINCT ON (split_part(setting, '=', 1)) split_part(setting, '=', 1) AS name,
           split_part(setting, '=', 2) AS value
    FROM pg_db_role_setting, unnest(setconfig) AS setting
    WHERE setrole = to_regrole(quote_ident(coalesce(nullif(%s, ''), current_user)))
      AND setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
    ORDER BY split_part(setting, '=', 1), setdatabase DESC
)
SELECT name, coalesce(own.value, current_setting(name))
FROM unnest(ARRAY['synchronous_standby_names', 'synchronous_commit', 'statement_timeout']) AS name
LEFT JOIN own USING (name)
