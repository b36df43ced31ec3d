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

-- Reserves wei that the service may lose, under a key, and returns whether the hourly limits allow it. The limits count
-- reserved wei and losses of the last 60 minutes, of one user (no limit if null) and of all users. A repeat raises the
-- amount. Transactions wait for each other here, so a transaction takes this lock last.
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

-- Looks at the channel of a call: why it is refused there, if it is, and the relayer of the channel's calls in flight.
--
-- A key manager executes the nonces of a channel strictly one after the other. So a call ahead of the chain's nonce
-- is accepted only behind active calls of its channel, and on their relayer: then the order of account nonces is the
-- order on chain.
CREATE OR REPLACE FUNCTION relay_look_at_channel(
    on_chain bigint, call jsonb, followers integer, OUT outcome text, OUT number numeric, OUT sticky bigint
) LANGUAGE plpgsql AS $$
DECLARE
    manager CONSTANT text := call ->> 'key_manager';
    signed_by CONSTANT text := call ->> 'controller';
    queue CONSTANT numeric := call ->> 'channel';
    nonce CONSTANT numeric := call ->> 'relay_nonce';
    chain_nonce CONSTANT numeric := call ->> 'chain_nonce';
BEGIN
    -- The names of the statuses are put in by relay/models, from the one place that has them.
    SELECT earlier.relayer_id INTO sticky
    FROM relay_relaytransaction AS earlier
    WHERE earlier.chain_id = on_chain AND earlier.key_manager_address = manager
      AND earlier.controller_address = signed_by AND earlier.channel = queue
      AND earlier.status IN @in_progress@
    LIMIT 1;
    IF EXISTS (
        SELECT FROM relay_relaytransaction AS earlier
        WHERE earlier.chain_id = on_chain AND earlier.key_manager_address = manager
          AND earlier.controller_address = signed_by AND earlier.channel = queue
          AND earlier.relay_nonce = nonce AND earlier.status IN @active@
    ) THEN
        outcome := 'nonce-taken';
    ELSIF nonce > chain_nonce THEN
        SELECT min(expected) INTO number
        FROM generate_series(chain_nonce, least(nonce - 1, chain_nonce + followers)) AS expected
        WHERE NOT EXISTS (
            SELECT FROM relay_relaytransaction AS earlier
            WHERE earlier.chain_id = on_chain AND earlier.key_manager_address = manager
              AND earlier.controller_address = signed_by AND earlier.channel = queue
              AND earlier.relay_nonce = expected AND earlier.status IN @active@ AND earlier.terminal_status = ''
        );
        IF number IS NOT NULL THEN
            outcome := 'nonce-gap';
        ELSIF nonce - chain_nonce > followers THEN
            outcome := 'channel-full';
        END IF;
    END IF;
END $$;

-- Returns how many calls a user may have in flight, of whom `holds` are open and others leave `free` account nonces.
CREATE OR REPLACE FUNCTION relay_most_open(
    of_user bigint, holds integer, free integer, policy jsonb, now timestamptz
) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    share CONSTANT integer := policy ->> 'share_percent';
    most integer := holds;
BEGIN
    IF share < 100 THEN
        -- A user has a share of what all others leave free. With 50 percent, n users who want all they can get
        -- come to one of n + 1 equal parts each, and the last part stays free for the next user.
        most := greatest(1, free * share / 100);
    END IF;
    IF holds > 1 THEN
        -- Each call in flight may still end without effect. What was read before the account was locked has
        -- ruled out that those which ended are too many by themselves.
        SELECT least(most, (policy ->> 'per_day')::integer - count(*),
                     (policy ->> 'per_hour')::integer - count(*) FILTER (
                         WHERE ended.settled_at > now - interval '1 hour'
                     ))
        INTO most
        FROM relay_relaytransaction AS ended
        WHERE ended.user_id = of_user AND ended.settled_at > now - interval '1 day'
          AND ended.status IN @unsuccessful@ AND @callers_doing@;
    END IF;
    RETURN most;
END $$;

-- Holds the credits of each call, and refuses those that their hold, their channel or their user's share does not allow. The
-- outcome of the others is null. Every hold that was placed stays placed.
CREATE OR REPLACE FUNCTION relay_admit_calls(calls jsonb, policy jsonb) RETURNS TABLE (
    place integer, outcome text, hold_id bigint, balance bigint, user_id bigint, number numeric,
    transaction_hash text, sticky bigint, request jsonb
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    chain CONSTANT bigint := policy ->> 'chain';
    -- Account nonces of all active relayers, and how many of them are taken.
    slots integer;
    in_use integer;
    most_open integer;
    call record;
BEGIN
    SELECT count(*) * (policy ->> 'in_flight')::integer,
           coalesce(sum(greatest(0, next_account_nonce - mined_account_nonce)), 0)
    INTO slots, in_use
    FROM relay_relayer WHERE chain_id = chain AND is_active;

    FOR call IN
        SELECT held.*, element
        FROM credits_place_holds(calls) AS held
        JOIN jsonb_array_elements(calls) AS element ON (element ->> 'place')::integer = held.place
    LOOP
        place := call.place;
        outcome := call.outcome;
        hold_id := call.hold_id;
        balance := call.balance;
        user_id := call.user_id;
        number := call.available;
        transaction_hash := NULL;
        request := call.element;
        IF outcome = 'repeated' THEN
            SELECT earlier.transaction_hash INTO transaction_hash
            FROM relay_relaytransaction AS earlier WHERE earlier.hold_id = call.hold_id;
        ELSIF outcome = 'placed' THEN
            SELECT * INTO outcome, number, sticky
            FROM relay_look_at_channel(chain, request, (policy ->> 'followers')::integer);
            IF outcome IS NULL THEN
                most_open := relay_most_open(
                    call.user_id, call.open_holds, slots - greatest(0, in_use - call.open_holds + 1), policy,
                    (request ->> 'now')::timestamptz
                );
                IF call.open_holds > most_open THEN
                    outcome := 'share-used';
                    number := greatest(0, most_open);
                ELSE
                    in_use := in_use + 1;
                END IF;
            END IF;
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;

-- Locks relayers for calls and returns them: those of channels in flight, waiting for each; then, for calls whose place in
-- `stickies` is null, the least loaded others, without waiting.
CREATE OR REPLACE FUNCTION relay_lock_relayers(
    on_chain bigint, cap integer, addresses text[], stickies bigint[]
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    locked bigint[];
BEGIN
    SELECT coalesce(array_agg(relayer.id), '{}') INTO locked FROM (
        SELECT id FROM relay_relayer WHERE id = ANY(stickies) ORDER BY id FOR NO KEY UPDATE
    ) AS relayer;
    IF cardinality(array_remove(stickies, NULL)) = cardinality(stickies) THEN
        RETURN locked;
    END IF;
    SELECT locked || coalesce(array_agg(relayer.id), '{}') INTO locked FROM (
        SELECT id FROM relay_relayer
        WHERE chain_id = on_chain AND is_active AND address = ANY(addresses) AND NOT id = ANY(locked)
          AND next_account_nonce < mined_account_nonce + cap
        ORDER BY next_account_nonce - mined_account_nonce, id
        LIMIT cardinality(stickies) FOR NO KEY UPDATE SKIP LOCKED
    ) AS relayer;
    IF cardinality(locked) = 0 THEN
        -- All are locked. A transaction that holds no relayer may wait for one.
        BEGIN
            SELECT coalesce(array_agg(relayer.id), '{}') INTO locked FROM (
                SELECT id FROM relay_relayer
                WHERE chain_id = on_chain AND is_active AND address = ANY(addresses)
                  AND next_account_nonce < mined_account_nonce + cap
                ORDER BY next_account_nonce - mined_account_nonce, id
                LIMIT 1 FOR NO KEY UPDATE
            ) AS relayer;
        EXCEPTION WHEN lock_not_available THEN
            -- As busy as one that is full.
            locked := '{}';
        END;
    END IF;
    RETURN locked;
END $$;

-- Locks one more relayer that can pay for a call, without waiting, and returns what it can still take. Adding up what
-- every relayer has in flight is expensive, so this comes last.
CREATE OR REPLACE FUNCTION relay_lock_another(
    on_chain bigint, cap integer, addresses text[], locked bigint[], cost numeric
) RETURNS TABLE (id bigint, address text, next_account_nonce bigint, room bigint, free_wei numeric) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    candidate bigint;
BEGIN
    SELECT relayer.id INTO candidate FROM (
        SELECT id FROM relay_relayer
        WHERE chain_id = on_chain AND is_active AND address = ANY(addresses) AND NOT id = ANY(coalesce(locked, '{}'))
          AND next_account_nonce < mined_account_nonce + cap
          AND cost <= (SELECT free_wei FROM relay_room_of(ARRAY[relay_relayer.id], cap))
        ORDER BY next_account_nonce - mined_account_nonce, id
        LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
    ) AS relayer;
    -- A statement of its own, so that it sees the attempts that others stored before they gave up the lock.
    RETURN QUERY SELECT found.id, found.address, found.next_account_nonce, found.room, found.free_wei
    FROM relay_room_of(ARRAY[candidate], cap) AS found WHERE found.room > 0 AND found.free_wei >= cost;
END $$;

-- Uses up the quote of a call that has a relayer, and sets aside what the service may lose by the call. Returns 'taken',
-- 'quote-used' or 'loss-limit'; after the latter the quote is as good as before.
CREATE OR REPLACE FUNCTION relay_reserve_call(on_chain bigint, call jsonb, policy jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    quote CONSTANT uuid := call ->> 'quote';
    hold_key CONSTANT text := call ->> 'key';
    risk CONSTANT numeric := call ->> 'risk_wei';
    now CONSTANT timestamptz := call ->> 'now';
BEGIN
    IF quote IS NOT NULL THEN
        -- Of two calls with the same quote, the second waits here for the first to commit.
        UPDATE relay_quote SET used_at = now WHERE id = quote AND used_at IS NULL;
        IF NOT FOUND THEN
            RETURN 'quote-used';
        END IF;
        -- What is reserved for the quote is now reserved for its call.
        UPDATE relay_loss SET key = hold_key WHERE chain_id = on_chain AND key = 'quote:' || quote;
    END IF;
    IF risk > 0 AND NOT relay_reserve_loss(
        on_chain, hold_key, (call ->> 'user_id')::bigint, @untrusted@, risk, now,
        (policy ->> 'user_loss_wei')::numeric, (policy ->> 'service_loss_wei')::numeric
    ) THEN
        IF quote IS NOT NULL THEN
            -- The quote stays good, and what it has reserved stays under its own key.
            UPDATE relay_quote SET used_at = NULL WHERE id = quote;
            UPDATE relay_loss SET key = 'quote:' || quote WHERE chain_id = on_chain AND key = hold_key;
        END IF;
        RETURN 'loss-limit';
    END IF;
    RETURN 'taken';
END $$;

-- Gives each of these calls what it needs to be signed: credits set aside, its place in its channel, a relayer and
-- that relayer's next account nonce. One call is a batch of one; no two of a batch have the same channel.
--
-- Locks are taken in one order everywhere: holds, users' accounts, the day's unbacked credits, sponsors' accounts, relayers,
-- each in the order of its key. With its account locked, what is read of a channel is final: all its calls belong to one profile and one account.
-- A refusal is a row, and leaves nothing of the call behind; an error leaves nothing of the batch.
--
-- calls: [{place, user_id, key, credits, debt_limit, key_manager, controller, channel, relay_nonce, chain_nonce,
-- worst_cost_wei, risk_wei, quote, now, sponsor}], where `sponsor` is null, or {version, sponsor_credits, is_quoted} for a call that
-- `sponsors_pay` pays beside `credits`. policy: {chain, addresses, in_flight, followers, share_percent, per_hour, per_day,
-- user_loss_wei, service_loss_wei, lock_timeout, relayer_lock_timeout}: the latter from the first lock of a relayer to the end
-- of the transaction; null changes nothing. One row for each call:
--   taken          the hold, the balance before, and the relayer with the account nonce
--   repeated       an equal call was accepted before; the hash that it was answered, and its user
--   insufficient   the account affords less: `number` is what a hold could take
--   no-account     the user has no credit account yet
--   nonce-taken    an active call has this relay nonce
--   nonce-gap      `number` is an earlier relay nonce without a pending call
--   channel-full   too many calls of the channel wait before this one
--   share-used     the user holds `number` account nonces already: as many as one may while others want some too, or
--                  while calls of the last hour or day have ended without effect
--   channel-busy   the relayer of the channel's calls can take no more
--   relayers-busy  no relayer can
--   loss-limit     the call may cost the service `risk_wei`, which may lose no more
--   quote-used     the quote is used already; whether it is the call's and still good was seen before
--   sponsor-…      the rule by which the sponsor does not pay, as `sponsors_pay` names it
CREATE OR REPLACE FUNCTION relay_take_slots(calls jsonb, policy jsonb) RETURNS TABLE (
    place integer, outcome text, hold_id bigint, balance bigint, user_id bigint, number numeric,
    relayer_id bigint, relayer_address text, account_nonce bigint, transaction_hash text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    chain CONSTANT bigint := policy ->> 'chain';
    cap CONSTANT integer := policy ->> 'in_flight';
    addresses CONSTANT text[] := ARRAY(SELECT jsonb_array_elements_text(policy -> 'addresses'));
    call record;
    refused bigint[] := '{}';
    -- Of the calls that were admitted: the call, its hold, its balance, and the relayer of its channel if it has one.
    admitted jsonb[] := '{}';
    holds bigint[] := '{}';
    balances bigint[] := '{}';
    stickies bigint[] := '{}';
    -- Of the calls that sponsors pay; and the rules that refused some of them, by place.
    sponsored jsonb[] := '{}';
    unpaid jsonb := '{}';
    -- The relayers that this transaction has locked, and what each can still take.
    locked bigint[];
    names text[];
    nonces bigint[];
    free_slots bigint[];
    funds numeric[];
    cost numeric;
    best integer;
BEGIN
    PERFORM set_config('lock_timeout', policy ->> 'lock_timeout', true) WHERE policy ->> 'lock_timeout' IS NOT NULL;
    FOR call IN
        SELECT * FROM relay_admit_calls(calls, policy)
    LOOP
        IF call.outcome IS NULL THEN
            admitted := admitted || call.request;
            holds := holds || call.hold_id;
            balances := balances || call.balance;
            stickies := stickies || call.sticky;
            IF call.request -> 'sponsor' <> 'null' THEN
                sponsored := sponsored || (call.request || (call.request -> 'sponsor')
                                           || jsonb_build_object('hold_id', call.hold_id));
            END IF;
            CONTINUE;
        END IF;
        place := call.place;
        outcome := call.outcome;
        hold_id := call.hold_id;
        balance := call.balance;
        user_id := call.user_id;
        number := call.number;
        transaction_hash := call.transaction_hash;
        RETURN NEXT;
        IF outcome NOT IN ('repeated', 'insufficient', 'no-account') THEN
            refused := refused || hold_id;
        END IF;
    END LOOP;

    IF cardinality(sponsored) > 0 THEN
        SELECT coalesce(jsonb_object_agg(paid.place, paid.outcome), '{}') INTO unpaid
        FROM sponsors_pay(to_jsonb(sponsored)) AS paid WHERE paid.outcome IS NOT NULL;
    END IF;

    -- The accounts are locked meanwhile, and others hold a relayer for a moment only.
    PERFORM set_config('lock_timeout', policy ->> 'relayer_lock_timeout', true)
    WHERE policy ->> 'relayer_lock_timeout' IS NOT NULL;
    locked := relay_lock_relayers(chain, cap, addresses, stickies);
    -- A statement of its own, so that it sees the attempts that others stored before they gave up their locks.
    SELECT array_agg(id), array_agg(address), array_agg(next_account_nonce), array_agg(room), array_agg(free_wei)
    INTO locked, names, nonces, free_slots, funds
    FROM relay_room_of(locked, cap) WHERE is_active AND address = ANY(addresses);

    user_id := NULL;
    number := NULL;
    transaction_hash := NULL;
    FOR item IN 1 .. cardinality(admitted) LOOP
        place := admitted[item] ->> 'place';
        cost := admitted[item] ->> 'worst_cost_wei';
        hold_id := holds[item];
        balance := balances[item];
        relayer_id := NULL;
        relayer_address := NULL;
        account_nonce := NULL;
        IF unpaid ? place::text THEN
            outcome := unpaid ->> place::text;
            refused := refused || hold_id;
            RETURN NEXT;
            CONTINUE;
        END IF;
        best := NULL;
        FOR candidate IN 1 .. coalesce(cardinality(locked), 0) LOOP
            IF free_slots[candidate] > 0 AND funds[candidate] >= cost
               AND (stickies[item] IS NULL OR stickies[item] = locked[candidate])
               AND (best IS NULL OR free_slots[candidate] > free_slots[best]) THEN
                best := candidate;
            END IF;
        END LOOP;
        IF best IS NULL AND stickies[item] IS NULL THEN
            SELECT * INTO call FROM relay_lock_another(chain, cap, addresses, locked, cost);
            IF FOUND THEN
                locked := locked || call.id;
                names := names || call.address;
                nonces := nonces || call.next_account_nonce;
                free_slots := free_slots || call.room;
                funds := funds || call.free_wei;
                best := cardinality(locked);
            END IF;
        END IF;
        outcome := CASE WHEN best IS NOT NULL THEN relay_reserve_call(chain, admitted[item], policy)
                        WHEN stickies[item] IS NULL THEN 'relayers-busy' ELSE 'channel-busy' END;
        IF outcome = 'taken' THEN
            relayer_id := locked[best];
            relayer_address := names[best];
            account_nonce := nonces[best];
            nonces[best] := nonces[best] + 1;
            free_slots[best] := free_slots[best] - 1;
            funds[best] := funds[best] - cost;
        ELSE
            refused := refused || hold_id;
        END IF;
        RETURN NEXT;
    END LOOP;

    UPDATE relay_relayer AS relayer SET next_account_nonce = taken.next
    FROM unnest(locked, nonces) AS taken (id, next)
    WHERE relayer.id = taken.id AND relayer.next_account_nonce < taken.next;
    IF cardinality(refused) > 0 THEN
        PERFORM credits_withdraw_holds(refused);
        IF cardinality(sponsored) > 0 THEN
            PERFORM sponsors_withdraw(refused);
        END IF;
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
