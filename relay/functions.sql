-- Relayers with what they can still take: `balance_wei` is without the highest cost of what is in flight. The caller has
-- locked them in an earlier statement. After a fail-over, a relayer is missing until its account nonce was compared.
CREATE OR REPLACE FUNCTION relay_capacity_of(relayers bigint[]) RETURNS SETOF relay_relayer LANGUAGE plpgsql STABLE AS $$
DECLARE
    each record;
    found relay_relayer;
BEGIN
    FOR each IN
        SELECT relayer, coalesce((
                   SELECT sum(attempt.gas_limit * attempt.max_fee_per_gas_wei + attempt.max_extra_fee_wei) FROM relay_attempt AS attempt
                   WHERE attempt.relayer_id = relayer.id AND attempt.account_nonce >= relayer.mined_account_nonce
                     AND attempt.status NOT IN @costless@
               ), 0) + coalesce((
                   SELECT sum(worst_cost_wei) FROM relay_unsignedcall AS unsigned WHERE unsigned.relayer_id = relayer.id
               ), 0) AS in_flight_wei
        FROM relay_relayer AS relayer
        WHERE relayer.id = ANY(relayers) AND coalesce(relayer.timeline, @timeline@) = @timeline@
        ORDER BY relayer.id
    LOOP
        found := each.relayer;
        found.balance_wei := found.balance_wei - each.in_flight_wei;
        RETURN NEXT found;
    END LOOP;
END $$;

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

-- Returns why the channel of a call refuses it, if it does, and the relayer to which calls in flight bind the channel.
--
-- A key manager executes the nonces of a channel one after the other. So a call ahead of the chain's nonce is accepted
-- only behind active calls of its channel, and on their relayer: the order of account nonces is then the order on chain.
CREATE OR REPLACE FUNCTION relay_check_channel(
    on_chain bigint, call jsonb, followers integer, OUT outcome text, OUT number numeric, OUT bound bigint
) LANGUAGE plpgsql AS $$
DECLARE
    manager CONSTANT text := call ->> 'key_manager';
    signed_by CONSTANT text := call ->> 'controller';
    queue CONSTANT numeric := call ->> 'channel';
    nonce CONSTANT numeric := call ->> 'relay_nonce';
    chain_nonce CONSTANT numeric := call ->> 'chain_nonce';
BEGIN
    SELECT earlier.relayer_id INTO bound
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
-- outcome of the others is null, and `admitted` is the call with its hold, the balance before it, and the relayer to which
-- its channel is `bound`. The caller withdraws the holds of refused calls.
CREATE OR REPLACE FUNCTION relay_admit_calls(calls jsonb, policy jsonb) RETURNS TABLE (
    place integer, outcome text, hold_id bigint, balance bigint, user_id bigint, number numeric,
    transaction_hash text, admitted jsonb
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    chain CONSTANT bigint := policy ->> 'chain';
    -- Account nonces of all active relayers, and how many of them are taken.
    slots integer;
    in_use integer;
    most_open integer;
    bound bigint;
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
        admitted := NULL;
        IF outcome = 'repeated' THEN
            SELECT earlier.transaction_hash INTO transaction_hash
            FROM relay_relaytransaction AS earlier WHERE earlier.hold_id = call.hold_id;
        ELSIF outcome = 'placed' THEN
            SELECT * INTO outcome, number, bound
            FROM relay_check_channel(chain, call.element, (policy ->> 'followers')::integer);
            IF outcome IS NULL THEN
                most_open := relay_most_open(
                    call.user_id, call.open_holds, slots - greatest(0, in_use - call.open_holds + 1), policy,
                    (call.element ->> 'now')::timestamptz
                );
                IF call.open_holds > most_open THEN
                    outcome := 'share-used';
                    number := greatest(0, most_open);
                ELSE
                    in_use := in_use + 1;
                    admitted := call.element || jsonb_build_object(
                        'hold_id', hold_id, 'balance', balance, 'bound', bound
                    );
                END IF;
            END IF;
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;

-- Locks relayers for calls and returns them: those of channels in flight, waiting for each; then the least loaded others,
-- without waiting. `bound` has the relayer of each call's channel, null if it has none in flight.
CREATE OR REPLACE FUNCTION relay_lock_relayers(
    on_chain bigint, cap integer, addresses text[], bound bigint[]
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    locked bigint[];
BEGIN
    SELECT coalesce(array_agg(relayer.id), '{}') INTO locked FROM (
        SELECT id FROM relay_relayer WHERE id = ANY(bound) ORDER BY id FOR NO KEY UPDATE
    ) AS relayer;
    IF array_position(bound, NULL) IS NULL THEN
        RETURN locked;
    END IF;
    SELECT locked || coalesce(array_agg(relayer.id), '{}') INTO locked FROM (
        SELECT id FROM relay_relayer
        WHERE chain_id = on_chain AND is_active AND address = ANY(addresses) AND NOT id = ANY(locked)
          AND next_account_nonce < mined_account_nonce + cap
        ORDER BY next_account_nonce - mined_account_nonce, id
        LIMIT cardinality(bound) FOR NO KEY UPDATE SKIP LOCKED
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

-- Locks one more relayer that can pay for a call, without waiting, and returns its capacity, or no row. Adding up what
-- every relayer has in flight is expensive, so this comes last.
CREATE OR REPLACE FUNCTION relay_lock_another(
    on_chain bigint, cap integer, addresses text[], locked bigint[], cost numeric
) RETURNS SETOF relay_relayer LANGUAGE plpgsql AS $$
DECLARE
    candidate bigint;
BEGIN
    SELECT relayer.id INTO candidate FROM (
        SELECT id FROM relay_relayer
        WHERE chain_id = on_chain AND is_active AND address = ANY(addresses) AND NOT id = ANY(locked)
          AND next_account_nonce < mined_account_nonce + cap
          AND cost <= (SELECT capacity.balance_wei FROM relay_capacity_of(ARRAY[relay_relayer.id]) AS capacity)
        ORDER BY next_account_nonce - mined_account_nonce, id
        LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
    ) AS relayer;
    -- A statement of its own, so that it sees the attempts that others stored before they gave up the lock.
    RETURN QUERY SELECT * FROM relay_capacity_of(ARRAY[candidate]) AS found
    WHERE found.next_account_nonce < found.mined_account_nonce + cap AND found.balance_wei >= cost;
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

-- Returns the place of the least loaded relayer that can take a call: that of its channel, if `bound` names one.
CREATE OR REPLACE FUNCTION relay_choose_relayer(
    relayers relay_relayer[], cap integer, bound bigint, cost numeric
) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    relayer relay_relayer;
    place integer := 0;
    least integer := cap;
    best integer;
BEGIN
    FOREACH relayer IN ARRAY relayers LOOP
        place := place + 1;
        IF relayer.next_account_nonce - relayer.mined_account_nonce < least AND relayer.balance_wei >= cost
           AND (bound IS NULL OR relayer.id = bound) THEN
            least := relayer.next_account_nonce - relayer.mined_account_nonce;
            best := place;
        END IF;
    END LOOP;
    RETURN best;
END $$;

-- Gives each admitted call a relayer and the relayer's next account nonce, or the reason why there is none. Locks relayers,
-- which comes last in the order of locks.
CREATE OR REPLACE FUNCTION relay_assign_account_nonces(admitted jsonb[], policy jsonb) RETURNS TABLE (
    call jsonb, outcome text, relayer_id bigint, relayer_address text, account_nonce bigint
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    chain CONSTANT bigint := policy ->> 'chain';
    cap CONSTANT integer := policy ->> 'in_flight';
    addresses CONSTANT text[] := ARRAY(SELECT jsonb_array_elements_text(policy -> 'addresses'));
    locked bigint[];
    relayers relay_relayer[];
    another relay_relayer;
    bound bigint;
    cost numeric;
    best integer;
BEGIN
    -- Users' accounts are locked already, so this waits less long for relayers.
    PERFORM set_config('lock_timeout', policy ->> 'relayer_lock_timeout', true)
    WHERE policy ->> 'relayer_lock_timeout' IS NOT NULL;
    locked := relay_lock_relayers(
        chain, cap, addresses, ARRAY(SELECT (each ->> 'bound')::bigint FROM unnest(admitted) AS each)
    );
    -- A statement of its own, so that it sees the attempts that others stored before they gave up their locks.
    relayers := ARRAY(
        SELECT relayer FROM relay_capacity_of(locked) AS relayer
        WHERE relayer.is_active AND relayer.address = ANY(addresses)
    );
    FOREACH call IN ARRAY admitted LOOP
        bound := call ->> 'bound';
        cost := call ->> 'worst_cost_wei';
        best := relay_choose_relayer(relayers, cap, bound, cost);
        IF best IS NULL AND bound IS NULL THEN
            SELECT * INTO another FROM relay_lock_another(
                chain, cap, addresses, ARRAY(SELECT id FROM unnest(relayers)), cost
            );
            IF FOUND THEN
                relayers := relayers || another;
                best := cardinality(relayers);
            END IF;
        END IF;
        outcome := CASE WHEN best IS NOT NULL THEN relay_reserve_call(chain, call, policy)
                        WHEN bound IS NULL THEN 'relayers-busy' ELSE 'channel-busy' END;
        relayer_id := NULL;
        relayer_address := NULL;
        account_nonce := NULL;
        IF outcome = 'taken' THEN
            relayer_id := relayers[best].id;
            relayer_address := relayers[best].address;
            account_nonce := relayers[best].next_account_nonce;
            relayers[best].next_account_nonce := account_nonce + 1;
            relayers[best].balance_wei := relayers[best].balance_wei - cost;
        END IF;
        RETURN NEXT;
    END LOOP;

    UPDATE relay_relayer AS relayer SET next_account_nonce = assigned.next_account_nonce
    FROM unnest(relayers) AS assigned
    WHERE relayer.id = assigned.id AND relayer.next_account_nonce < assigned.next_account_nonce;
END $$;

-- Has sponsors pay for those admitted calls that name one; returns the rules that refused some, by the call's place.
CREATE OR REPLACE FUNCTION relay_have_sponsors_pay(admitted jsonb[]) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    sponsored CONSTANT jsonb := (
        SELECT jsonb_agg(call || (call -> 'sponsor')) FROM unnest(admitted) AS call WHERE call -> 'sponsor' <> 'null'
    );
BEGIN
    IF sponsored IS NULL THEN
        RETURN '{}';
    END IF;
    RETURN (
        SELECT coalesce(jsonb_object_agg(paid.place, paid.outcome), '{}')
        FROM sponsors_pay(sponsored) AS paid WHERE paid.outcome IS NOT NULL
    );
END $$;

-- Gives each call what it needs to be signed: credits on hold, a relayer and the relayer's next account nonce. No two calls
-- have the same channel. A refusal is a row, and leaves nothing of the call; an error leaves nothing of the batch.
--
-- Locks: holds, users' accounts, the day's unbacked credits, sponsors' accounts, relayers, each in the order of its key.
-- Once the account is locked, what is read of a channel is final: all its calls belong to one account.
--
-- calls: [{place, user_id, key, credits, debt_limit, paid_only, elsewhere, key_manager, controller, channel, relay_nonce,
-- chain_nonce, worst_cost_wei, risk_wei, quote, now, sponsor}]; `sponsor` is null or what `sponsors_pay` wants of the call.
-- policy: {chain, addresses, in_flight, followers, share_percent, per_hour, per_day, user_loss_wei, service_loss_wei,
-- lock_timeout, relayer_lock_timeout}; a timeout of null changes nothing. Outcomes:
--   taken          the hold, the balance before, and the relayer with the account nonce
--   repeated       an equal call was accepted before: its user, and its hash if it is signed
--   insufficient   the account affords less: `number` is what a hold could take
--   unpaid         the account has paid for less: `number` is what it has left of credits that it has paid for
--   no-account     the user has no credit account yet
--   nonce-taken    an active call has this relay nonce
--   nonce-gap      `number` is an earlier relay nonce without a pending call
--   channel-full   too many calls of the channel wait before this one
--   share-used     more calls of the user would be in flight than `number`, the user's share of account nonces now
--   channel-busy   the relayer of the channel's calls can take no more
--   relayers-busy  no relayer can
--   loss-limit     the call may cost the service `risk_wei`, which may lose no more
--   quote-used     the quote is used already
--   sponsor-…      the rule by which the sponsor does not pay, as `sponsors_pay` names it
CREATE OR REPLACE FUNCTION relay_take_slots(calls jsonb, policy jsonb) RETURNS TABLE (
    place integer, outcome text, hold_id bigint, balance bigint, user_id bigint, number numeric,
    relayer_id bigint, relayer_address text, account_nonce bigint, transaction_hash text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    call record;
    admitted jsonb[] := '{}';
    refused bigint[] := '{}';
    unpaid jsonb;
BEGIN
    PERFORM set_config('lock_timeout', policy ->> 'lock_timeout', true) WHERE policy ->> 'lock_timeout' IS NOT NULL;
    FOR call IN SELECT * FROM relay_admit_calls(calls, policy) LOOP
        IF call.outcome IS NULL THEN
            admitted := admitted || call.admitted;
            CONTINUE;
        END IF;
        RETURN QUERY SELECT call.place, call.outcome, call.hold_id, call.balance, call.user_id, call.number,
                            NULL::bigint, NULL, NULL::bigint, call.transaction_hash;
        IF call.outcome NOT IN ('repeated', 'insufficient', 'unpaid', 'no-account') THEN
            refused := refused || call.hold_id;
        END IF;
    END LOOP;

    unpaid := relay_have_sponsors_pay(admitted);
    FOR call IN
        SELECT each AS call, unpaid ->> (each ->> 'place') AS outcome, NULL::bigint AS relayer_id,
               NULL AS relayer_address, NULL::bigint AS account_nonce
        FROM unnest(admitted) AS each WHERE unpaid ? (each ->> 'place')
        UNION ALL
        SELECT * FROM relay_assign_account_nonces(
            ARRAY(SELECT each FROM unnest(admitted) AS each WHERE NOT unpaid ? (each ->> 'place')), policy
        )
    LOOP
        RETURN QUERY SELECT (call.call ->> 'place')::integer, call.outcome, (call.call ->> 'hold_id')::bigint,
                            (call.call ->> 'balance')::bigint, NULL::bigint, NULL::numeric,
                            call.relayer_id, call.relayer_address, call.account_nonce, NULL;
        IF call.outcome <> 'taken' THEN
            refused := refused || (call.call ->> 'hold_id')::bigint;
        END IF;
    END LOOP;
    IF cardinality(refused) > 0 THEN
        PERFORM credits_withdraw_holds(refused), sponsors_withdraw(refused);
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
