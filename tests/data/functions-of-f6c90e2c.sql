CREATE FUNCTION credits_place_holds(wanted jsonb) RETURNS TABLE (
    place integer, outcome text, hold_id bigint, user_id bigint, balance bigint, available bigint, open_holds integer
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    call record;
BEGIN
    FOR call IN
        WITH request AS (
            SELECT * FROM jsonb_to_recordset(wanted)
                AS request (place integer, user_id bigint, key text, credits bigint, debt_limit bigint)
        ), placed AS (
            INSERT INTO credits_hold (account_id, key, amount, status)
            SELECT account.id, request.key, request.credits, 'HELD'
            FROM request JOIN credits_account AS account ON account.user_id = request.user_id
            ORDER BY request.key
            ON CONFLICT (key) DO NOTHING
            RETURNING id, account_id, key
        )
        SELECT request.*, placed.id AS hold_id, placed.account_id
        FROM request LEFT JOIN placed ON placed.key = request.key
        ORDER BY placed.account_id, request.place
    LOOP
        place := call.place;
        user_id := call.user_id;
        hold_id := call.hold_id;
        available := NULL;
        open_holds := NULL;
        IF call.hold_id IS NULL THEN
            SELECT 'repeated', hold.id, account.user_id, account.balance INTO outcome, hold_id, user_id, balance
            FROM credits_hold AS hold JOIN credits_account AS account ON account.id = hold.account_id
            WHERE hold.key = call.key;
            IF NOT FOUND THEN
                outcome := 'no-account';
            END IF;
            RETURN NEXT;
            CONTINUE;
        END IF;
        UPDATE credits_account AS account
        SET held = account.held + call.credits, open_holds = account.open_holds + 1
        WHERE account.id = call.account_id
          AND account.balance - account.held - call.credits >= -call.debt_limit
        RETURNING 'placed', account.balance, account.open_holds INTO outcome, balance, open_holds;
        IF NOT FOUND THEN
            DELETE FROM credits_hold WHERE id = call.hold_id;
            SELECT 'insufficient', account.balance, account.balance - account.held INTO outcome, balance, available
            FROM credits_account AS account WHERE account.id = call.account_id;
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;
CREATE FUNCTION credits_withdraw_holds(holds bigint[]) RETURNS void LANGUAGE sql AS $$
    WITH withdrawn AS (
        DELETE FROM credits_hold WHERE id = ANY(holds) RETURNING account_id, amount
    ), totals AS (
        SELECT account_id, sum(amount)::bigint AS amount, count(*)::integer AS holds
        FROM withdrawn GROUP BY account_id
    )
    UPDATE credits_account AS account
    SET held = account.held - totals.amount, open_holds = account.open_holds - totals.holds
    FROM totals WHERE account.id = totals.account_id;
$$;
CREATE FUNCTION rewards_badge_at(track text, experience bigint) RETURNS SETOF rewards_badge
LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT badge.* FROM rewards_badge AS badge
    WHERE badge.track = rewards_badge_at.track
      AND badge.exp_lower_bound <= rewards_badge_at.experience
      AND (badge.exp_upper_bound IS NULL OR badge.exp_upper_bound > rewards_badge_at.experience)
$$;
CREATE FUNCTION relay_room_of(relayers bigint[], cap integer) RETURNS TABLE (
    id bigint, address text, is_active boolean, next_account_nonce bigint, room bigint, free_wei numeric
) LANGUAGE sql STABLE AS $$
    SELECT relayer.id, relayer.address, relayer.is_active, relayer.next_account_nonce,
           CASE WHEN relayer.timeline <> ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint THEN 0
                ELSE relayer.mined_account_nonce + cap - relayer.next_account_nonce END,
           relayer.balance_wei - coalesce((
               SELECT sum(attempt.gas_limit * attempt.max_fee_per_gas_wei) FROM relay_attempt AS attempt
               WHERE attempt.relayer_id = relayer.id AND attempt.account_nonce >= relayer.mined_account_nonce
                 AND attempt.status NOT IN ('withdrawn', 'mined')
           ), 0) - coalesce((
               SELECT sum(worst_cost_wei) FROM relay_unsignedcall AS unsigned WHERE unsigned.relayer_id = relayer.id
           ), 0)
    FROM relay_relayer AS relayer WHERE relayer.id = ANY(relayers) ORDER BY relayer.id
$$;
CREATE FUNCTION relay_reserve_loss(
    on_chain bigint, cause text, of_user bigint, what text, wei numeric, now timestamptz, user_limit numeric,
    service_limit numeric
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    missing numeric;
    by_user numeric;
    by_all numeric;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('relay_reserve_loss', on_chain));
    SELECT wei - coalesce(sum(reserved_wei), 0) INTO missing
    FROM relay_loss WHERE chain_id = on_chain AND key = cause AND settled_at IS NULL;
    IF missing <= 0 THEN
        RETURN true;
    END IF;
    SELECT coalesce(sum(coalesce(lost_wei, reserved_wei)) FILTER (WHERE user_id = of_user), 0),
           coalesce(sum(coalesce(lost_wei, reserved_wei)), 0)
    INTO by_user, by_all
    FROM relay_loss WHERE chain_id = on_chain AND (settled_at IS NULL OR settled_at > now - interval '1 hour');
    IF by_user + missing > user_limit OR by_all + missing > service_limit THEN
        RETURN false;
    END IF;
    INSERT INTO relay_loss (chain_id, key, user_id, kind, reserved_wei, reserved_at)
    VALUES (on_chain, cause, of_user, what, wei, now)
    ON CONFLICT (chain_id, key) DO UPDATE
    SET kind = what, reserved_wei = wei, lost_wei = NULL, settled_at = NULL;
    RETURN true;
END $$;
CREATE FUNCTION relay_take_slots(calls jsonb, policy jsonb) RETURNS TABLE (
    place integer, outcome text, hold_id bigint, balance bigint, user_id bigint, number numeric,
    relayer_id bigint, relayer_address text, account_nonce bigint, transaction_hash text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    chain CONSTANT bigint := policy ->> 'chain';
    cap CONSTANT integer := policy ->> 'in_flight';
    followers CONSTANT integer := policy ->> 'followers';
    share CONSTANT integer := policy ->> 'share_percent';
    per_hour CONSTANT integer := policy ->> 'per_hour';
    per_day CONSTANT integer := policy ->> 'per_day';
    addresses CONSTANT text[] := ARRAY(SELECT jsonb_array_elements_text(policy -> 'addresses'));
    slots integer;
    in_use integer;
    most_open integer;
    call record;
    refused bigint[] := '{}';
    places integer[] := '{}';
    holds bigint[] := '{}';
    balances bigint[] := '{}';
    costs numeric[] := '{}';
    risks jsonb[] := '{}';
    quotes uuid[] := '{}';
    stickies bigint[] := '{}';
    sticky bigint;
    locked bigint[];
    names text[];
    nonces bigint[];
    free_slots bigint[];
    funds numeric[];
    best integer;
    candidate_id bigint;
BEGIN
    SELECT count(*) * cap, coalesce(sum(greatest(0, next_account_nonce - mined_account_nonce)), 0)
    INTO slots, in_use
    FROM relay_relayer WHERE chain_id = chain AND is_active;
    FOR call IN
        SELECT request.*, held.outcome AS hold_outcome, held.hold_id AS held_id, held.user_id AS owner_id,
               held.balance AS held_balance, held.available, held.open_holds
        FROM credits_place_holds(calls) AS held
        JOIN jsonb_to_recordset(calls) AS request (
            place integer, user_id bigint, key text, key_manager text, controller text, channel numeric,
            relay_nonce numeric, chain_nonce numeric, worst_cost_wei numeric, risk_wei numeric, quote uuid,
            now timestamptz
        ) ON request.place = held.place
    LOOP
        place := call.place;
        hold_id := call.held_id;
        balance := call.held_balance;
        user_id := call.owner_id;
        number := NULL;
        transaction_hash := NULL;
        IF call.hold_outcome <> 'placed' THEN
            outcome := call.hold_outcome;
            number := call.available;
            IF outcome = 'repeated' THEN
                SELECT earlier.transaction_hash INTO transaction_hash
                FROM relay_relaytransaction AS earlier WHERE earlier.hold_id = call.held_id;
            END IF;
            RETURN NEXT;
            CONTINUE;
        END IF;
        outcome := NULL;
        SELECT earlier.relayer_id INTO sticky
        FROM relay_relaytransaction AS earlier
        WHERE earlier.chain_id = chain AND earlier.key_manager_address = call.key_manager
          AND earlier.controller_address = call.controller AND earlier.channel = call.channel
          AND earlier.status IN ('Pending', 'Submitted')
        LIMIT 1;
        IF EXISTS (
            SELECT FROM relay_relaytransaction AS earlier
            WHERE earlier.chain_id = chain AND earlier.key_manager_address = call.key_manager
              AND earlier.controller_address = call.controller AND earlier.channel = call.channel
              AND earlier.relay_nonce = call.relay_nonce AND earlier.status IN ('Pending', 'Submitted', 'Success', 'ExecutedExternally')
        ) THEN
            outcome := 'nonce-taken';
        ELSIF call.relay_nonce > call.chain_nonce THEN
            SELECT min(expected) INTO number
            FROM generate_series(call.chain_nonce, least(call.relay_nonce - 1, call.chain_nonce + followers)) AS expected
            WHERE NOT EXISTS (
                SELECT FROM relay_relaytransaction AS earlier
                WHERE earlier.chain_id = chain AND earlier.key_manager_address = call.key_manager
                  AND earlier.controller_address = call.controller AND earlier.channel = call.channel
                  AND earlier.relay_nonce = expected AND earlier.status IN ('Pending', 'Submitted', 'Success', 'ExecutedExternally') AND earlier.terminal_status = ''
            );
            IF number IS NOT NULL THEN
                outcome := 'nonce-gap';
            ELSIF call.relay_nonce - call.chain_nonce > followers THEN
                outcome := 'channel-full';
            END IF;
        END IF;
        IF outcome IS NULL THEN
            most_open := call.open_holds;
            IF share < 100 THEN
                most_open := greatest(1, (slots - greatest(0, in_use - call.open_holds + 1)) * share / 100);
            END IF;
            IF call.open_holds > 1 THEN
                SELECT least(most_open, per_day - count(*),
                             per_hour - count(*) FILTER (WHERE ended.settled_at > call.now - interval '1 hour'))
                INTO most_open
                FROM relay_relaytransaction AS ended
                WHERE ended.user_id = call.owner_id AND ended.settled_at > call.now - interval '1 day'
                  AND ended.status IN ('Failed', 'Expired', 'Cancelled', 'ExecutedExternally') AND (ended.status <> 'Cancelled' OR ended.failure_code = 'predecessor-failed');
            END IF;
            IF call.open_holds > most_open THEN
                outcome := 'share-used';
                number := greatest(0, most_open);
            END IF;
        END IF;
        IF outcome IS NOT NULL THEN
            refused := refused || call.held_id;
            RETURN NEXT;
            CONTINUE;
        END IF;
        places := places || place;
        holds := holds || hold_id;
        balances := balances || balance;
        costs := costs || call.worst_cost_wei;
        risks := risks || jsonb_build_object(
            'wei', call.risk_wei, 'user', call.owner_id, 'key', call.key, 'now', call.now
        );
        quotes := quotes || call.quote;
        stickies := stickies || sticky;
        in_use := in_use + 1;
    END LOOP;
    SELECT coalesce(array_agg(relayer.id), '{}') INTO locked FROM (
        SELECT id FROM relay_relayer WHERE id = ANY(stickies) ORDER BY id FOR NO KEY UPDATE
    ) AS relayer;
    IF cardinality(array_remove(stickies, NULL)) < cardinality(stickies) THEN
        SELECT locked || coalesce(array_agg(relayer.id), '{}') INTO locked FROM (
            SELECT id FROM relay_relayer
            WHERE chain_id = chain AND is_active AND address = ANY(addresses) AND NOT id = ANY(locked)
              AND next_account_nonce < mined_account_nonce + cap
            ORDER BY next_account_nonce - mined_account_nonce, id
            LIMIT cardinality(stickies) FOR NO KEY UPDATE SKIP LOCKED
        ) AS relayer;
        IF cardinality(locked) = 0 THEN
            SELECT coalesce(array_agg(relayer.id), '{}') INTO locked FROM (
                SELECT id FROM relay_relayer
                WHERE chain_id = chain AND is_active AND address = ANY(addresses)
                  AND next_account_nonce < mined_account_nonce + cap
                ORDER BY next_account_nonce - mined_account_nonce, id
                LIMIT 1 FOR NO KEY UPDATE
            ) AS relayer;
        END IF;
    END IF;
    SELECT array_agg(id), array_agg(address), array_agg(next_account_nonce), array_agg(room), array_agg(free_wei)
    INTO locked, names, nonces, free_slots, funds
    FROM relay_room_of(locked, cap) WHERE is_active AND address = ANY(addresses);
    number := NULL;
    user_id := NULL;
    transaction_hash := NULL;
    FOR item IN 1 .. cardinality(places) LOOP
        place := places[item];
        hold_id := holds[item];
        balance := balances[item];
        best := NULL;
        FOR candidate IN 1 .. coalesce(cardinality(locked), 0) LOOP
            IF free_slots[candidate] > 0 AND funds[candidate] >= costs[item]
               AND (stickies[item] IS NULL OR stickies[item] = locked[candidate])
               AND (best IS NULL OR free_slots[candidate] > free_slots[best]) THEN
                best := candidate;
            END IF;
        END LOOP;
        IF best IS NULL AND stickies[item] IS NULL THEN
            SELECT relayer.id INTO candidate_id FROM (
                SELECT id FROM relay_relayer
                WHERE chain_id = chain AND is_active AND address = ANY(addresses)
                  AND NOT id = ANY(coalesce(locked, '{}')) AND next_account_nonce < mined_account_nonce + cap
                  AND costs[item] <= (SELECT free_wei FROM relay_room_of(ARRAY[relay_relayer.id], cap))
                ORDER BY next_account_nonce - mined_account_nonce, id
                LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
            ) AS relayer;
            SELECT locked || id AS locked, names || address AS names, nonces || next_account_nonce AS nonces,
                   free_slots || room AS free_slots, funds || free_wei AS funds
            INTO call
            FROM relay_room_of(ARRAY[candidate_id], cap) WHERE room > 0 AND free_wei >= costs[item];
            IF FOUND THEN
                locked := call.locked;
                names := call.names;
                nonces := call.nonces;
                free_slots := call.free_slots;
                funds := call.funds;
                best := cardinality(locked);
            END IF;
        END IF;
        outcome := 'taken';
        IF best IS NULL THEN
            outcome := CASE WHEN stickies[item] IS NULL THEN 'relayers-busy' ELSE 'channel-busy' END;
        ELSIF quotes[item] IS NOT NULL THEN
            UPDATE relay_quote SET used_at = (risks[item] ->> 'now')::timestamptz
            WHERE id = quotes[item] AND used_at IS NULL;
            IF NOT FOUND THEN
                outcome := 'quote-used';
            ELSE
                UPDATE relay_loss SET key = risks[item] ->> 'key'
                WHERE chain_id = chain AND key = 'quote:' || quotes[item];
            END IF;
        END IF;
        IF outcome = 'taken' AND (risks[item] ->> 'wei')::numeric > 0 AND NOT relay_reserve_loss(
            chain, risks[item] ->> 'key', (risks[item] ->> 'user')::bigint, 'untrusted',
            (risks[item] ->> 'wei')::numeric, (risks[item] ->> 'now')::timestamptz,
            (policy ->> 'user_loss_wei')::numeric, (policy ->> 'service_loss_wei')::numeric
        ) THEN
            outcome := 'loss-limit';
        END IF;
        IF outcome = 'loss-limit' AND quotes[item] IS NOT NULL THEN
            UPDATE relay_quote SET used_at = NULL WHERE id = quotes[item];
            UPDATE relay_loss SET key = 'quote:' || quotes[item]
            WHERE chain_id = chain AND key = risks[item] ->> 'key';
        END IF;
        IF outcome <> 'taken' THEN
            relayer_id := NULL;
            relayer_address := NULL;
            account_nonce := NULL;
            refused := refused || hold_id;
            RETURN NEXT;
            CONTINUE;
        END IF;
        relayer_id := locked[best];
        relayer_address := names[best];
        account_nonce := nonces[best];
        nonces[best] := nonces[best] + 1;
        free_slots[best] := free_slots[best] - 1;
        funds[best] := funds[best] - costs[item];
        RETURN NEXT;
    END LOOP;
    UPDATE relay_relayer AS relayer SET next_account_nonce = taken.next
    FROM unnest(locked, nonces) AS taken (id, next)
    WHERE relayer.id = taken.id AND relayer.next_account_nonce < taken.next;
    IF cardinality(refused) > 0 THEN
        PERFORM credits_withdraw_holds(refused);
    END IF;
END $$;
CREATE FUNCTION relay_store_calls(calls jsonb, chain bigint) RETURNS void LANGUAGE sql AS $$
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
               hold_id, transaction_hash, gas_limit, expected_cost, 0, quoted_cost, credits_before, 'Pending', '', '',
               '', request_id, accepted_at
        FROM request
        RETURNING id, transaction_hash
    ), signed AS (
        INSERT INTO relay_attempt (
            chain_id, relay_transaction_id, relayer_id, account_nonce, sequence, kind, status, transaction_hash, raw,
            gas_limit, max_fee_per_gas_wei, max_priority_fee_per_gas_wei, node_message, block_hash, created_at
        )
        SELECT chain, stored.id, relayer_id, account_nonce, 0, 'call', 'signed', request.transaction_hash,
               decode(raw, 'hex'), gas_limit, max_fee_wei, max_tip_wei, '', '', accepted_at
        FROM request JOIN stored USING (transaction_hash)
    )
    SELECT pg_notify('relay_signed', '');
$$;
