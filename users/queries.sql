-- name: session_with_user
-- A session with its user, ended or not.
SELECT @session_columns@, @user_columns@
FROM users_signinsession AS session JOIN users_user AS owner ON owner.id = session.user_id
WHERE session.id = %(session)s

-- name: trusted_codes
-- The codes of profiles and key managers that are trusted on a chain, each as its kind and its name, in one row. On
-- another chain than home, an address counts only if the code there is that of home.
SELECT coalesce(array_agg(kind || ' ' || coalesce(address, code_hash)), '{}')
FROM users_trustedimplementation AS vetted
WHERE is_active AND (%(chain)s = %(home)s OR address IS NULL OR EXISTS (
    SELECT FROM users_foundcode AS there JOIN users_foundcode AS at_home USING (address, code_hash)
    WHERE address = vetted.address AND there.chain_id = %(chain)s AND at_home.chain_id = %(home)s))

-- name: late_deletions
-- The age in seconds of the oldest deletion in each unfinished state; 0 if there is none.
SELECT coalesce(extract(epoch FROM now() - min(requested_at) FILTER (WHERE status = 'requested')), 0),
       coalesce(extract(epoch FROM now() - min(requested_at) FILTER (WHERE status = 'billing-ended')), 0)
FROM users_accountdeletion WHERE status <> 'erased'

-- name: session_state(user, session, now)
-- The state of a verified token's session, for statements that read more: see `users.queries.session_state`.
(SELECT CASE
    WHEN NOT token_user.is_active AND EXISTS (
        SELECT FROM users_ban WHERE user_id = token_user.id AND lifted_at IS NULL) THEN 'banned'
    WHEN @session@ IS NOT NULL AND NOT COALESCE(
        token_session.user_id = token_user.id
        AND token_session.revoked_at IS NULL
        AND token_session.expires_at > @now@, FALSE) THEN 'ended'
    WHEN NOT token_user.is_active THEN 'inactive'
    ELSE 'active' END
FROM users_user AS token_user LEFT JOIN users_signinsession AS token_session ON token_session.id = @session@
WHERE token_user.id = @user@)
