-- Called by the commits before version 1.0, until their processes are replaced. Dropped in 1.1.
CREATE OR REPLACE FUNCTION relay_store_calls(calls jsonb, chain bigint) RETURNS void LANGUAGE sql AS $$
    WITH request AS MATERIALIZED (
        SELECT * FROM jsonb_to_recordset(calls) AS request (
            user_id bigint, profile text, key_manager text, controller text, digest text, generation smallint,
            channel numeric, relay_nonce numeric, validity numeric, payload text, signature text,
            is_follower boolean, relayer_id bigint, account_nonce bigint, hold_id bigint, transaction_hash text,
            raw text, gas_limit bigint, max_fee_wei numeric, max_tip_wei numeric, expected_cost bigint,
            quoted_cost bigint, credits_before bigint, request_id text, accepted_at timestamptz
        )
    ), stored AS (
        INSERT INTO relay_relaytransaction (
            chain_id, user_id, profile_address, key_manager_address, controller_address, digest, generation, channel,
            relay_nonce, validity, payload, signature, is_follower, relayer_id, hold_id, transaction_hash,
            gas_limit, expected_cost, real_cost, quoted_cost, credits_before, status, terminal_status, failure_code,
            failure_detail, request_id, created_at
        )
        SELECT chain, user_id, profile, key_manager, controller, digest, generation, channel,
               relay_nonce, validity, decode(payload, 'hex'), decode(signature, 'hex'), is_follower, relayer_id,
               hold_id, transaction_hash, gas_limit, expected_cost, 0, quoted_cost, credits_before, @pending@, '', '',
               '', request_id, accepted_at
        FROM request
        RETURNING id, transaction_hash
    ), signed AS (
        INSERT INTO relay_attempt (
            chain_id, relay_transaction_id, relayer_id, account_nonce, sequence, kind, status, transaction_hash, raw,
            gas_limit, max_fee_per_gas_wei, max_priority_fee_per_gas_wei, node_message, block_hash, created_at
        )
        SELECT chain, stored.id, relayer_id, account_nonce, 0, @call_kind@, @signed@, request.transaction_hash,
               decode(raw, 'hex'), gas_limit, max_fee_wei, max_tip_wei, '', '', accepted_at
        FROM request JOIN stored USING (transaction_hash)
    )
    SELECT pg_notify('relay_signed', '');
$$;
