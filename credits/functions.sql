-- Places many holds at once; a single one is a batch of one.
--
-- Of equal keys only one is placed, here or in any other transaction: the insert waits for a competing one, in the
-- order of keys, so that two batches never wait for each other. Then each account is charged with its holds in the
-- order of places, computed from the row that the update has locked, in the order of accounts. A hold that its
-- account does not afford is deleted again.
--
-- wanted: [{place, user_id, key, credits, debt_limit}]. One row for each, in the order of accounts:
--   placed       the hold, the account's balance, and how many of its holds are open now
--   repeated     the key was taken before: the hold it names, its user, and the balance of that user's account
--   insufficient the account affords less: `available` is what a hold could take
--   no-account   the user has no account yet
CREATE OR REPLACE FUNCTION credits_place_holds(wanted jsonb) RETURNS TABLE (
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

-- Takes back holds of which nobody was told, where what they pay for was refused after all.
CREATE OR REPLACE FUNCTION credits_withdraw_holds(holds bigint[]) RETURNS void LANGUAGE sql AS $$
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
