-- What relayers can still take: how many account nonces, and wei for their gas. A caller that relies on it has locked
-- them in a statement before. Attempts that were withdrawn or mined cost nothing any more. After a fail-over of PostgreSQL
-- a relayer has no room until the nodes were asked which account nonces they know.
CREATE OR REPLACE FUNCTION relay_room_of(relayers bigint[], cap integer) RETURNS TABLE (
    id bigint, address text, is_active boolean, next_account_nonce bigint, room bigint, free_wei numeric
) LANGUAGE sql STABLE AS $$
    SELECT relayer.id, relayer.address, relayer.is_active, relayer.next_account_nonce,
           CASE WHEN relayer.timeline <> @timeline@ THEN 0
                ELSE relayer.mined_account_nonce + cap - relayer.next_account_nonce END,
           relayer.balance_wei - coalesce((
               SELECT sum(attempt.gas_limit * attempt.max_fee_per_gas_wei) FROM relay_attempt AS attempt
               WHERE attempt.relayer_id = relayer.id AND attempt.account_nonce >= relayer.mined_account_nonce
                 AND attempt.status NOT IN @costless@
           ), 0) - coalesce((
               SELECT sum(worst_cost_wei) FROM relay_unsignedcall AS unsigned WHERE unsigned.relayer_id = relayer.id
           ), 0)
    FROM relay_relayer AS relayer WHERE relayer.id = ANY(relayers) ORDER BY relayer.id
$$;

-- Sets aside wei that the service may lose, under a key, and says whether the limits of an hour allow it: what is set
-- aside, and what was lost within 60 minutes, by one user (without a limit where that is null) and by all. A repeat
-- raises the amount. Transactions that want the same wait for each other, so this is the last lock that any takes.
CREATE OR REPLACE FUNCTION relay_reserve_loss(
    on_chain bigint, cause text, of_user bigint, what text, wei numeric, now timestamptz, user_limit numeric,
    service_limit numeric
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    missing numeric;
    by_user numeric;
    by_all numeric;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('relay_reserve_loss', on_chain));
    -- From here on, statements see what others have committed before they gave up the lock.
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

-- Gives each of these calls what it needs to be signed: credits set aside, its place in its channel, a relayer and
-- that relayer's next account nonce. One call is a batch of one; no two of a batch have the same channel.
--
-- Locks are taken in one order everywhere: holds, accounts, relayers, each in the order of its key. With its account
-- locked, what is read of a channel is final: all calls of a channel belong to one profile, and so to one account.
-- A refusal is a row, and leaves nothing of the call behind; an error leaves nothing of the batch.
--
-- A key manager executes the nonces of a channel strictly one after the other. So a call ahead of the chain's nonce
-- is accepted only behind active calls of its channel, and on their relayer: then the order of account nonces is the
-- order on chain.
--
-- calls: [{place, user_id, key, credits, debt_limit, key_manager, controller, channel, relay_nonce, chain_nonce,
-- worst_cost_wei, risk_wei, quote, now}]. policy: {chain, addresses, in_flight, followers, share_percent, per_hour, per_day,
-- user_loss_wei, service_loss_wei}. One row for each call:
--   taken          the hold, the balance before, and the relayer with the account nonce
--   repeated       an equal call was accepted before; the hash that it was answered, and its user
--   insufficient   the account affords less: `number` is what a hold could take
--   no-account     the user has no credit account yet
--   nonce-taken    an active call has this relay nonce
--   nonce-gap      `number` is the relay nonce before this one that has no living call here
--   channel-full   too many calls of the channel wait before this one
--   share-used     the user holds `number` account nonces already: as many as one may while others want some too, or
--                  while calls of the last hour or day have ended without effect
--   channel-busy   the relayer of the channel's calls can take no more
--   relayers-busy  no relayer can
--   loss-limit     the call may cost the service `risk_wei`, which may lose no more
--   quote-used     the quote is used already; whether it is the call's and still good was seen before
CREATE OR REPLACE FUNCTION relay_take_slots(calls jsonb, policy jsonb) RETURNS TABLE (
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
    -- Account nonces of all active relayers, and how many of them are taken.
    slots integer;
    in_use integer;
    most_open integer;
    call record;
    refused bigint[] := '{}';
    -- Of the calls that passed: place, hold, balance, worst cost, and the relayer of their channel if it has one.
    places integer[] := '{}';
    holds bigint[] := '{}';
    balances bigint[] := '{}';
    costs numeric[] := '{}';
    risks jsonb[] := '{}';
    quotes uuid[] := '{}';
    stickies bigint[] := '{}';
    sticky bigint;
    -- The relayers that this transaction has locked, and what each can still take.
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
        -- The names of the statuses are put in by relay/models, from the one place that has them.
        SELECT earlier.relayer_id INTO sticky
        FROM relay_relaytransaction AS earlier
        WHERE earlier.chain_id = chain AND earlier.key_manager_address = call.key_manager
          AND earlier.controller_address = call.controller AND earlier.channel = call.channel
          AND earlier.status IN @in_progress@
        LIMIT 1;
        IF EXISTS (
            SELECT FROM relay_relaytransaction AS earlier
            WHERE earlier.chain_id = chain AND earlier.key_manager_address = call.key_manager
              AND earlier.controller_address = call.controller AND earlier.channel = call.channel
              AND earlier.relay_nonce = call.relay_nonce AND earlier.status IN @active@
        ) THEN
            outcome := 'nonce-taken';
        ELSIF call.relay_nonce > call.chain_nonce THEN
            SELECT min(expected) INTO number
            FROM generate_series(call.chain_nonce, least(call.relay_nonce - 1, call.chain_nonce + followers)) AS expected
            WHERE NOT EXISTS (
                SELECT FROM relay_relaytransaction AS earlier
                WHERE earlier.chain_id = chain AND earlier.key_manager_address = call.key_manager
                  AND earlier.controller_address = call.controller AND earlier.channel = call.channel
                  AND earlier.relay_nonce = expected AND earlier.status IN @active@ AND earlier.terminal_status = ''
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
                -- A user has a share of what all others leave free. With 50 percent, n users who want all they can get
                -- come to one of n + 1 equal parts each, and the last part stays free for the next user.
                most_open := greatest(1, (slots - greatest(0, in_use - call.open_holds + 1)) * share / 100);
            END IF;
            IF call.open_holds > 1 THEN
                -- Each call in flight may still end without effect. What was read before the account was locked has
                -- ruled out that those which ended are too many by themselves.
                SELECT least(most_open, per_day - count(*),
                             per_hour - count(*) FILTER (WHERE ended.settled_at > call.now - interval '1 hour'))
                INTO most_open
                FROM relay_relaytransaction AS ended
                WHERE ended.user_id = call.owner_id AND ended.settled_at > call.now - interval '1 day'
                  AND ended.status IN @unsuccessful@ AND @callers_doing@;
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

    -- The relayers of channels in flight, waiting for each; then the least loaded others, without waiting.
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
            -- All are locked. A transaction that holds no relayer may wait for one.
            SELECT coalesce(array_agg(relayer.id), '{}') INTO locked FROM (
                SELECT id FROM relay_relayer
                WHERE chain_id = chain AND is_active AND address = ANY(addresses)
                  AND next_account_nonce < mined_account_nonce + cap
                ORDER BY next_account_nonce - mined_account_nonce, id
                LIMIT 1 FOR NO KEY UPDATE
            ) AS relayer;
        END IF;
    END IF;

    -- A statement of its own, so that it sees the attempts that others stored before they gave up their locks.
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
            -- Adding up what every relayer has in flight is expensive, so it comes last; it waits for no lock.
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
            -- Of two calls with the same quote, the second waits here for the first to commit.
            UPDATE relay_quote SET used_at = (risks[item] ->> 'now')::timestamptz
            WHERE id = quotes[item] AND used_at IS NULL;
            IF NOT FOUND THEN
                outcome := 'quote-used';
            ELSE
                -- What is reserved for the quote is now reserved for its call.
                UPDATE relay_loss SET key = risks[item] ->> 'key'
                WHERE chain_id = chain AND key = 'quote:' || quotes[item];
            END IF;
        END IF;
        IF outcome = 'taken' AND (risks[item] ->> 'wei')::numeric > 0 AND NOT relay_reserve_loss(
            chain, risks[item] ->> 'key', (risks[item] ->> 'user')::bigint, @untrusted@,
            (risks[item] ->> 'wei')::numeric, (risks[item] ->> 'now')::timestamptz,
            (policy ->> 'user_loss_wei')::numeric, (policy ->> 'service_loss_wei')::numeric
        ) THEN
            outcome := 'loss-limit';
        END IF;
        IF outcome = 'loss-limit' AND quotes[item] IS NOT NULL THEN
            -- The quote stays good, and what it has reserved stays under its own key.
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

-- Stores calls and the signed bytes that carry them, and wakes the workers once this transaction commits.
--
-- calls: [{…}], each with the columns of the call and of its first attempt as keys. Bytes are \x and their hex. A column that
-- is no key has the default of its model; the lists of columns and defaults are those of the models.
CREATE OR REPLACE FUNCTION relay_insert_calls(calls jsonb) RETURNS void LANGUAGE sql AS $$
    WITH stored AS (
        INSERT INTO relay_relaytransaction (@call_columns@)
        SELECT @call_columns@
        FROM jsonb_populate_recordset(jsonb_populate_record(NULL::relay_relaytransaction, @call_defaults@), calls)
        RETURNING id, transaction_hash
    ), signed AS (
        INSERT INTO relay_attempt (relay_transaction_id, @attempt_columns@)
        SELECT stored.id, @attempt_columns@
        FROM jsonb_populate_recordset(jsonb_populate_record(NULL::relay_attempt, @attempt_defaults@), calls)
        JOIN stored USING (transaction_hash)
    )
    SELECT pg_notify('relay_signed', '');
$$;
