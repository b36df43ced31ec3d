-- The largest debt of an account: the debt limit of its badge, and never more than the credits that it has kept of
-- collected money and released earnings. The caller has locked the account in an earlier statement.
CREATE OR REPLACE FUNCTION credits_debt_limit(of_account bigint, badge_limit bigint) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN badge_limit > 0 THEN least(badge_limit, greatest(0, coalesce((
        SELECT sum(amount) FROM credits_entry WHERE account_id = of_account AND source IN @kept_sources@
    ), 0)))::bigint ELSE 0 END
$$;

-- The credits that an account has paid for and not yet spent by holds that take nothing else. The caller has locked the
-- account in an earlier statement. Credits that were given are spent first by all other holds.
CREATE OR REPLACE FUNCTION credits_paid_left(of_account bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT (
        coalesce((SELECT sum(amount) FROM credits_entry WHERE account_id = of_account AND source IN @paid_sources@), 0)
        - coalesce((SELECT credits FROM credits_paidspending WHERE account_id = of_account), 0)
    )::bigint
$$;

-- How many of an account's first credits are left at most, and the chains besides home on which they may be spent; null
-- without any. The caller has locked the account in an earlier statement. An account spends them before all others.
CREATE OR REPLACE FUNCTION credits_home_left(of_account bigint, OUT left_over bigint, OUT chain_ids bigint[])
LANGUAGE sql STABLE AS $$
    SELECT home.credits - home.spent, home.chain_ids FROM credits_homecredits AS home
    WHERE home.account_id = of_account AND home.spent < home.credits AND home.expires_at > statement_timestamp()
$$;

-- Adds new debt and credits of check-ins to the unbacked credits of the UTC day, or returns false where they exceed the
-- ceiling. The day's row stays locked until the transaction ends, so it is locked after the accounts and before relayers.
CREATE OR REPLACE FUNCTION credits_take_unbacked(new_debt bigint, of_check_ins bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    today CONSTANT date := (statement_timestamp() AT TIME ZONE 'UTC')::date;
BEGIN
    IF new_debt + of_check_ins = 0 THEN
        RETURN true;
    END IF;
    IF NOT EXISTS (SELECT FROM credits_unbackedday WHERE day = today) THEN
        INSERT INTO credits_unbackedday (day, debt, check_ins) VALUES (today, 0, 0) ON CONFLICT DO NOTHING;
    END IF;
    UPDATE credits_unbackedday SET debt = debt + new_debt, check_ins = check_ins + of_check_ins
    WHERE day = today
      AND debt + check_ins + new_debt + of_check_ins
          <= (SELECT credits FROM credits_unbackedceiling ORDER BY id DESC LIMIT 1);
    RETURN FOUND;
END $$;

-- Takes the new debt of these holds from the unbacked credits of the UTC day, and withdraws those that it does not cover.
-- The caller has locked all of their accounts. debts: what `credits_place_holds` returns for each if it is placed, with
-- its `new_debt`.
CREATE OR REPLACE FUNCTION credits_lend(debts jsonb[]) RETURNS TABLE (
    place integer, outcome text, hold_id bigint, user_id bigint, balance bigint, available bigint, open_holds integer
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    on_debt record;
BEGIN
    FOR on_debt IN
        SELECT * FROM unnest(debts) AS debt, jsonb_to_record(debt) AS item (
            place integer, user_id bigint, hold_id bigint, account_id bigint, credits bigint, new_debt bigint,
            balance bigint, available bigint, open_holds integer
        )
    LOOP
        place := on_debt.place;
        user_id := on_debt.user_id;
        hold_id := on_debt.hold_id;
        balance := on_debt.balance;
        IF credits_take_unbacked(on_debt.new_debt, 0) THEN
            outcome := 'placed';
            available := NULL;
            open_holds := on_debt.open_holds;
            UPDATE credits_hold SET debt = on_debt.new_debt, debt_day = (statement_timestamp() AT TIME ZONE 'UTC')::date
            WHERE id = hold_id AND on_debt.new_debt > 0;
        ELSE
            outcome := 'insufficient';
            available := on_debt.available;
            open_holds := NULL;
            PERFORM credits_withdraw_holds(ARRAY[hold_id]);
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;

-- Charges an account with a hold that it affords on debt only; where its debt limit does not allow it, `open_holds` is null.
CREATE OR REPLACE FUNCTION credits_hold_on_debt(
    charged bigint, wanted bigint, badge_limit bigint,
    OUT balance bigint, OUT available bigint, OUT open_holds integer, OUT new_debt bigint
) LANGUAGE plpgsql AS $$
BEGIN
    -- The sum of kept credits is read in a statement after this lock, so that it fits the balance.
    SELECT account.balance, account.balance - account.held INTO balance, available
    FROM credits_account AS account WHERE account.id = charged FOR NO KEY UPDATE;
    IF available - wanted >= -credits_debt_limit(charged, badge_limit) THEN
        new_debt := greatest(0, wanted - greatest(0, available));
        UPDATE credits_account AS account SET held = account.held + wanted, open_holds = account.open_holds + 1
        WHERE account.id = charged
        RETURNING account.open_holds INTO open_holds;
    END IF;
END $$;

-- Places many holds at once; a single one is a batch of one.
--
-- Of equal keys only one is placed, here or in any other transaction: the insert waits for a competing one, in the
-- order of keys, so that two batches never wait for each other. Then each account is charged with its holds in the
-- order of places, computed from the row that the update has locked, in the order of accounts. A hold that its
-- account does not afford is deleted again; one of 0, for a call that a sponsor pays, any account affords. Holds on debt
-- come last: with all accounts locked, their new debt is taken from the day's, whose row no other hold touches.
--
-- wanted: [{place, user_id, key, credits, debt_limit, paid_only, elsewhere}], with the debt limit of the user's badge, and the
-- call's chain unless it is the home chain. A hold that is `paid_only` takes neither credits that were given nor debt.
-- Elsewhere, first credits are taken only if their policy names the chain and they cover the hold; as long as some are
-- left, every other hold elsewhere is `paid_only`. One row for each, in the order of accounts, those on debt last:
--   placed       the hold, the account's balance, and how many of its holds are open now
--   repeated     the key was taken before: the hold it names, its user, and the balance of that user's account
--   insufficient the account affords less, or the service lends no more today: `available` is what a hold could take
--   unpaid       the account has paid for less: `available` is what a `paid_only` hold could take
--   no-account   the user has no account yet
CREATE OR REPLACE FUNCTION credits_place_holds(wanted jsonb) RETURNS TABLE (
    place integer, outcome text, hold_id bigint, user_id bigint, balance bigint, available bigint, open_holds integer
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    call record;
    on_debt record;
    -- Of the holds on debt: account, credits, new debt, and the columns to return if the service lends it.
    debts jsonb[] := '{}';
    paid_left bigint;
    held_before bigint;
    is_placed boolean;
    home record;
BEGIN
    SELECT NULL::bigint AS left_over, NULL::bigint[] AS chain_ids INTO home;
    FOR call IN
        WITH request AS (
            SELECT * FROM jsonb_to_recordset(wanted) AS request (
                place integer, user_id bigint, key text, credits bigint, debt_limit bigint, paid_only boolean, elsewhere bigint
            )
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
            outcome := coalesce(outcome, 'no-account');
            RETURN NEXT;
            CONTINUE;
        END IF;
        UPDATE credits_account AS account
        SET held = account.held + call.credits, open_holds = account.open_holds + 1
        WHERE account.id = call.account_id
          AND (account.balance - account.held >= call.credits OR call.credits = 0)
        RETURNING 'placed', account.balance, account.open_holds, account.held - call.credits
        INTO outcome, balance, open_holds, held_before;
        is_placed := FOUND;
        home.left_over := NULL;
        home.chain_ids := NULL;
        IF call.elsewhere IS NOT NULL AND call.credits > 0 THEN
            SELECT kept.left_over, kept.chain_ids INTO home FROM credits_home_left(call.account_id) AS kept;
        END IF;
        IF is_placed AND call.elsewhere = ANY(home.chain_ids) AND call.credits <= home.left_over - held_before THEN
            NULL;
        ELSIF is_placed AND (call.paid_only OR home.left_over IS NOT NULL) THEN
            paid_left := credits_paid_left(call.account_id);
            IF call.credits > paid_left THEN
                UPDATE credits_account AS account
                SET held = account.held - call.credits, open_holds = account.open_holds - 1
                WHERE account.id = call.account_id;
                DELETE FROM credits_hold WHERE id = call.hold_id;
                outcome := 'unpaid';
                available := greatest(0, paid_left);
                open_holds := NULL;
            ELSE
                UPDATE credits_hold SET paid_only = true WHERE id = call.hold_id;
            END IF;
        ELSIF NOT is_placed THEN
            SELECT * INTO on_debt FROM credits_hold_on_debt(
                call.account_id, call.credits,
                CASE WHEN call.paid_only OR home.left_over IS NOT NULL THEN 0 ELSE call.debt_limit END
            );
            IF on_debt.open_holds IS NOT NULL THEN
                debts := debts || (to_jsonb(call) || to_jsonb(on_debt));
                CONTINUE;
            END IF;
            DELETE FROM credits_hold WHERE id = call.hold_id;
            outcome := 'insufficient';
            balance := on_debt.balance;
            available := on_debt.available;
        END IF;
        RETURN NEXT;
    END LOOP;

    RETURN QUERY SELECT * FROM credits_lend(debts);
END $$;

-- Raises an open hold to the wanted credits in total, and returns whether it now covers them. Where it is closed, or its
-- account or the service's day do not afford the difference, nothing changes.
CREATE OR REPLACE FUNCTION credits_raise_hold(raised bigint, wanted bigint, badge_limit bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    hold credits_hold;
    more bigint;
    free bigint;
    new_debt bigint;
BEGIN
    SELECT * INTO STRICT hold FROM credits_hold WHERE id = raised FOR NO KEY UPDATE;
    IF hold.status <> 'HELD' OR hold.amount >= wanted THEN
        RETURN hold.status = 'HELD';
    END IF;
    more := wanted - hold.amount;
    SELECT balance - held INTO free FROM credits_account WHERE id = hold.account_id FOR NO KEY UPDATE;
    new_debt := greatest(0, more - greatest(0, free));
    IF hold.paid_only AND (new_debt > 0 OR more > credits_paid_left(hold.account_id)) THEN
        RETURN false;
    END IF;
    IF new_debt > 0 AND (
        free - more < -credits_debt_limit(hold.account_id, badge_limit) OR NOT credits_take_unbacked(new_debt, 0)
    ) THEN
        RETURN false;
    END IF;
    UPDATE credits_account SET held = held + more WHERE id = hold.account_id;
    UPDATE credits_hold
    SET amount = wanted, debt = debt + new_debt,
        debt_day = CASE WHEN new_debt > 0 THEN (statement_timestamp() AT TIME ZONE 'UTC')::date ELSE debt_day END
    WHERE id = raised;
    RETURN true;
END $$;

-- Deletes holds of calls that were refused before any response named them, and returns their new debt to its UTC day.
CREATE OR REPLACE FUNCTION credits_withdraw_holds(holds bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    lent record;
BEGIN
    FOR lent IN
        WITH withdrawn AS (
            DELETE FROM credits_hold WHERE id = ANY(holds) RETURNING account_id, amount, debt, debt_day
        ), totals AS (
            SELECT account_id, sum(amount)::bigint AS amount, count(*)::integer AS holds
            FROM withdrawn GROUP BY account_id
        ), locked AS (
            SELECT account.id, held - totals.amount AS held, open_holds - totals.holds AS open_holds
            FROM credits_account AS account JOIN totals ON totals.account_id = account.id
            ORDER BY account.user_id IS NULL, account.id FOR NO KEY UPDATE OF account
        ), freed AS (
            UPDATE credits_account AS account SET held = locked.held, open_holds = locked.open_holds
            FROM locked WHERE account.id = locked.id
        )
        SELECT debt_day AS day, sum(debt)::bigint AS debt FROM withdrawn WHERE debt > 0 GROUP BY debt_day ORDER BY debt_day
    LOOP
        UPDATE credits_unbackedday AS today SET debt = greatest(0, today.debt - lent.debt) WHERE today.day = lent.day;
    END LOOP;
END $$;
