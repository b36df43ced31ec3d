-- Where a call counts: the parts of its policy's usage, with what its version allows there and the rule that refuses
-- more credits. A part without a user counts all users, and one that begins in 1970 counts all time.
CREATE OR REPLACE FUNCTION sponsors_parts_of(of_version bigint, of_user bigint, at timestamptz) RETURNS TABLE (
    policy_id bigint, scope text, user_number bigint, begins timestamptz, most_credits bigint, most_calls bigint,
    rule text, place integer
) LANGUAGE sql STABLE AS $$
    SELECT version.policy_id, part.*
    FROM sponsors_policyversion AS version, LATERAL (VALUES
        ('user', of_user, 'epoch'::timestamptz, version.user_credits, version.user_calls, 'sponsor-limit-user-total', 1),
        ('user-day', of_user, date_trunc('day', at, 'UTC'), version.user_day_credits, NULL, 'sponsor-limit-user-day', 2),
        ('window', 0, to_timestamp(floor(extract(epoch FROM at) / version.window_seconds) * version.window_seconds),
         version.window_credits, version.window_calls, 'sponsor-limit-window', 3),
        ('campaign', 0, 'epoch', version.campaign_credits, version.campaign_calls, 'sponsor-limit-campaign', 4)
    ) AS part (scope, user_number, begins, most_credits, most_calls, rule, place)
    WHERE version.id = of_version AND (part.scope <> 'window' OR version.window_seconds IS NOT NULL)
$$;

-- Counts a call towards all limits of its policy, or none: returns the first rule that refuses it, null if it counts.
-- The caller has locked the sponsor's account in an earlier statement, so no other process changes the policy's usage.
CREATE OR REPLACE FUNCTION sponsors_count_call(
    of_version bigint, of_user bigint, at timestamptz, new_credits bigint
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    refusal text;
BEGIN
    INSERT INTO sponsors_usage (policy_id, scope, user_number, begins, credits, calls)
    SELECT policy_id, scope, user_number, begins, 0, 0 FROM sponsors_parts_of(of_version, of_user, at)
    ON CONFLICT DO NOTHING;
    WITH locked AS (
        SELECT usage.id, part.place,
               CASE WHEN usage.calls + 1 > part.most_calls THEN 'sponsor-limit-' || part.scope || '-calls'
                    WHEN usage.credits + new_credits > part.most_credits THEN part.rule END AS rule
        FROM sponsors_parts_of(of_version, of_user, at) AS part
        JOIN sponsors_usage AS usage ON usage.policy_id = part.policy_id AND usage.scope = part.scope
             AND usage.user_number = part.user_number AND usage.begins = part.begins
        FOR NO KEY UPDATE OF usage
    ), counted AS (
        UPDATE sponsors_usage AS usage SET credits = usage.credits + new_credits, calls = usage.calls + 1
        FROM locked WHERE usage.id = locked.id AND NOT EXISTS (SELECT FROM locked WHERE rule IS NOT NULL)
    )
    SELECT rule INTO refusal FROM locked WHERE rule IS NOT NULL ORDER BY place LIMIT 1;
    RETURN refusal;
END $$;

-- The calls of `sponsors_pay`, each with its policy and its sponsor's account. `sponsor_credits`, and with it
-- `call_credits`, include the first credits of a new profile.
CREATE OR REPLACE FUNCTION sponsors_requests(calls jsonb) RETURNS TABLE (
    place integer, hold_id bigint, user_id bigint, key text, now timestamptz, version bigint, sponsor_credits bigint,
    is_quoted boolean, voucher text, signer text, policy_id bigint, number integer, call_credits bigint,
    sponsor_id bigint, account_id bigint
) LANGUAGE sql STABLE AS $$
    SELECT request.*, version.policy_id, version.number, version.call_credits + coalesce(version.first_credits, 0),
           policy.sponsor_id, account.id
    FROM jsonb_to_recordset(calls) AS request (
        place integer, hold_id bigint, user_id bigint, key text, now timestamptz, version bigint,
        sponsor_credits bigint, is_quoted boolean, voucher text, signer text
    )
    JOIN sponsors_policyversion AS version ON version.id = request.version
    JOIN sponsors_policy AS policy ON policy.id = version.policy_id
    JOIN credits_account AS account ON account.sponsor_id = policy.sponsor_id
$$;

-- The periods of a sponsor's budget that contain a time: the UTC day and the UTC month.
CREATE OR REPLACE FUNCTION sponsors_periods_of(at timestamptz) RETURNS TABLE (
    scope text, begins timestamptz, ends timestamptz
) LANGUAGE sql STABLE AS $$
    VALUES ('day', date_trunc('day', at, 'UTC'), date_trunc('day', at, 'UTC') + interval '24 hours'),
           ('month', date_trunc('month', at, 'UTC'),
            (date_trunc('month', at AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC')
$$;

-- The sponsor's budget at a time: the most that all its policies together pay in a period. Without one, no row.
CREATE OR REPLACE FUNCTION sponsors_budget_of(of_sponsor bigint, at timestamptz) RETURNS TABLE (
    scope text, begins timestamptz, ends timestamptz, most_credits bigint
) LANGUAGE sql STABLE AS $$
    SELECT period.*, CASE period.scope WHEN 'day' THEN sponsor.day_credits ELSE sponsor.month_credits END
    FROM sponsors_sponsor AS sponsor, sponsors_periods_of(at) AS period
    WHERE sponsor.id = of_sponsor AND sponsor.day_credits IS NOT NULL
$$;

-- Begins to count the budgets of these calls' sponsors, where a period is not counted yet, with what its calls count.
-- The caller has locked the sponsors' accounts in an earlier statement.
CREATE OR REPLACE FUNCTION sponsors_begin_budgets(calls jsonb) RETURNS void LANGUAGE sql AS $$
    INSERT INTO sponsors_budgetuse (sponsor_id, scope, begins, credits)
    SELECT part.sponsor_id, part.scope, part.begins, coalesce((
        SELECT sum(paid.counted_credits) FROM sponsors_policy AS policy
        JOIN sponsors_policyversion AS version ON version.policy_id = policy.id
        JOIN sponsors_sponsoredcall AS paid
          ON paid.version_id = version.id AND paid.accepted_at >= part.begins AND paid.accepted_at < part.ends
        WHERE policy.sponsor_id = part.sponsor_id
    ), 0)
    FROM (
        SELECT DISTINCT call.sponsor_id, budget.scope, budget.begins, budget.ends
        FROM sponsors_requests(calls) AS call, LATERAL sponsors_budget_of(call.sponsor_id, call.now) AS budget
    ) AS part
    WHERE NOT EXISTS (
        SELECT FROM sponsors_budgetuse AS used
        WHERE used.sponsor_id = part.sponsor_id AND used.scope = part.scope AND used.begins = part.begins
    )
    ON CONFLICT DO NOTHING
$$;

-- Whether calls, each with the sponsor's part, exceed a budget together. Its use is counted since `sponsors_begin_budgets`.
CREATE OR REPLACE FUNCTION sponsors_exceed_budget(calls jsonb) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM sponsors_requests(calls) AS call, LATERAL sponsors_budget_of(call.sponsor_id, call.now) AS budget,
             sponsors_budgetuse AS used
        WHERE used.sponsor_id = call.sponsor_id AND used.scope = budget.scope AND used.begins = budget.begins
        GROUP BY used.id, budget.most_credits
        HAVING used.credits + sum(call.sponsor_credits) > budget.most_credits
    )
$$;

-- The reason to refuse a call regardless of the other calls: null, or an outcome of `sponsors_pay`.
CREATE OR REPLACE FUNCTION sponsors_refusal_of(
    of_sponsor bigint, of_policy bigint, of_number integer, quoted boolean, of_voucher text, credits bigint,
    most_credits bigint
) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN sponsor.is_frozen OR NOT policy.is_enabled THEN 'sponsor-frozen'
                WHEN NOT quoted AND EXISTS (
                    SELECT FROM sponsors_policyversion AS newer
                    WHERE newer.policy_id = of_policy AND newer.number > of_number
                ) THEN 'sponsor-policy-changed'
                WHEN EXISTS (
                    SELECT FROM sponsors_usedvoucher AS used
                    WHERE used.sponsor_id = of_sponsor AND used.voucher_id = of_voucher
                ) THEN 'sponsor-voucher-used'
                WHEN credits > most_credits THEN 'sponsor-limit-call' END
    FROM sponsors_sponsor AS sponsor, sponsors_policy AS policy
    WHERE sponsor.id = of_sponsor AND policy.id = of_policy
$$;

-- Holds the credits of these calls on their sponsors' accounts, which the caller has locked and found to have them, counts
-- them towards the sponsors' budgets, and links each hold with its user's.
CREATE OR REPLACE FUNCTION sponsors_hold(calls jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    WITH call AS (
        SELECT request.*,
               CASE WHEN request.sponsor_credits > terms.first_credits THEN terms.first_credits ELSE 0 END AS first_credits
        FROM sponsors_requests(calls) AS request JOIN sponsors_policyversion AS terms ON terms.id = request.version
    ), placed AS (
        INSERT INTO credits_hold (account_id, key, amount, status)
        SELECT account_id, 'sponsored:' || key, sponsor_credits - first_credits, 'HELD' FROM call
        UNION ALL
        SELECT account_id, 'first:' || key, first_credits, 'HELD' FROM call WHERE first_credits > 0
        RETURNING id, account_id, key, amount
    ), paid AS (
        INSERT INTO sponsors_sponsoredcall (
            hold_id, sponsor_hold_id, version_id, user_id, counted_credits, counted_calls, accepted_at
        )
        SELECT call.hold_id, placed.id, call.version, call.user_id, call.sponsor_credits, 1, call.now
        FROM call JOIN placed ON placed.key = 'sponsored:' || call.key RETURNING id, hold_id
    ), gifts AS (
        INSERT INTO sponsors_firstcredits (call_id, hold_id)
        SELECT paid.id, placed.id
        FROM call JOIN paid ON paid.hold_id = call.hold_id JOIN placed ON placed.key = 'first:' || call.key
    ), vouched AS (
        INSERT INTO sponsors_usedvoucher (sponsor_id, voucher_id, signer, call_id)
        SELECT call.sponsor_id, call.voucher, call.signer, paid.id
        FROM call JOIN paid ON paid.hold_id = call.hold_id WHERE call.voucher IS NOT NULL
    ), budgeted AS (
        UPDATE sponsors_budgetuse AS used SET credits = used.credits + part.credits
        FROM (
            SELECT call.sponsor_id, budget.scope, budget.begins, sum(call.sponsor_credits)::bigint AS credits
            FROM call, LATERAL sponsors_budget_of(call.sponsor_id, call.now) AS budget GROUP BY 1, 2, 3
        ) AS part
        WHERE used.sponsor_id = part.sponsor_id AND used.scope = part.scope AND used.begins = part.begins
    )
    UPDATE credits_account AS account
    SET held = account.held + placed.credits, open_holds = account.open_holds + placed.calls
    FROM (SELECT account_id, sum(amount)::bigint AS credits, count(*)::integer AS calls FROM placed GROUP BY 1) AS placed
    WHERE account.id = placed.account_id;
END $$;

-- Has sponsors pay for all of these calls, if all limits and balances allow them together; returns false and changes
-- nothing otherwise. The caller has locked the sponsors' accounts in an earlier statement.
--
-- Calls that a sponsor pays wait for its account one after the other, so a batch runs few statements while it holds
-- that lock.
CREATE OR REPLACE FUNCTION sponsors_pay_together(calls jsonb) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    parts jsonb;
    counted integer;
BEGIN
    IF EXISTS (
        SELECT FROM sponsors_requests(calls) AS call WHERE sponsors_refusal_of(
            call.sponsor_id, call.policy_id, call.number, call.is_quoted, call.voucher, call.sponsor_credits,
            call.call_credits
        ) IS NOT NULL
    ) OR EXISTS (
        SELECT FROM sponsors_requests(calls) AS call JOIN credits_account AS account ON account.id = call.account_id
        GROUP BY account.id HAVING sum(call.sponsor_credits) > min(account.balance - account.held)
                                OR count(call.voucher) > count(DISTINCT call.voucher)
    ) OR sponsors_exceed_budget(calls) THEN
        RETURN false;
    END IF;
    SELECT jsonb_agg(wanted) INTO parts FROM (
        SELECT part.policy_id, part.scope, part.user_number, part.begins, sum(call.sponsor_credits)::bigint AS credits,
               count(*) AS calls, min(part.most_credits) AS most_credits, min(part.most_calls) AS most_calls
        FROM sponsors_requests(calls) AS call,
             LATERAL sponsors_parts_of(call.version, call.user_id, call.now) AS part
        GROUP BY 1, 2, 3, 4
    ) AS wanted;
    INSERT INTO sponsors_usage (policy_id, scope, user_number, begins, credits, calls)
    SELECT part.policy_id, part.scope, part.user_number, part.begins, 0, 0
    FROM jsonb_to_recordset(parts) AS part (policy_id bigint, scope text, user_number bigint, begins timestamptz)
    WHERE NOT EXISTS (
        SELECT FROM sponsors_usage AS usage WHERE usage.policy_id = part.policy_id AND usage.scope = part.scope
           AND usage.user_number = part.user_number AND usage.begins = part.begins
    )
    ON CONFLICT DO NOTHING;
    WITH wanted AS (
        SELECT usage.id, part.credits, part.calls,
               usage.credits + part.credits > part.most_credits OR usage.calls + part.calls > part.most_calls AS exceeds
        FROM jsonb_to_recordset(parts) AS part (
            policy_id bigint, scope text, user_number bigint, begins timestamptz, credits bigint, calls bigint,
            most_credits bigint, most_calls bigint
        )
        JOIN sponsors_usage AS usage ON usage.policy_id = part.policy_id AND usage.scope = part.scope
             AND usage.user_number = part.user_number AND usage.begins = part.begins
    ), moved AS (
        UPDATE sponsors_usage AS usage
        SET credits = usage.credits + wanted.credits, calls = usage.calls + wanted.calls
        FROM wanted WHERE usage.id = wanted.id AND NOT EXISTS (SELECT FROM wanted WHERE exceeds)
        RETURNING usage.id
    )
    SELECT count(*) INTO counted FROM moved;
    IF counted = 0 THEN
        RETURN false;
    END IF;
    PERFORM sponsors_hold(calls);
    RETURN true;
END $$;

-- Has sponsors pay for calls whose users' holds are placed: counts each towards the limits of its policy, holds its
-- credits on the sponsor's account, and links the two holds. A sponsor never owes anything.
--
-- The sponsors' accounts are locked in their order, after those of all users and before relayers. Calls that do not all
-- fit together are paid one after the other; one that is refused leaves nothing behind.
--
-- calls: [{place, hold_id, user_id, key, now, version, sponsor_credits, is_quoted, voucher, signer}], where
-- `voucher` is the id of a voucher that `signer` signed, or null. One row for each: its place, and the rule that refuses it
-- or null: those of `sponsors.errors`, or
--   sponsor-frozen           staff have frozen the sponsor, or switched off the policy
--   sponsor-policy-changed   the policy has a newer version, and no quote names this one
--   sponsor-without-credits  the sponsor's account does not have the credits
--   sponsor-budget           the sponsor's budget of the day or the month does not have them
--   sponsor-voucher-used     another call has used the voucher
CREATE OR REPLACE FUNCTION sponsors_pay(calls jsonb) RETURNS TABLE (place integer, outcome text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    call record;
BEGIN
    PERFORM FROM credits_account
    WHERE id IN (SELECT account_id FROM sponsors_requests(calls)) ORDER BY id FOR NO KEY UPDATE;
    -- Statements from here on see what others committed before they gave up the accounts.
    PERFORM sponsors_begin_budgets(calls);
    IF sponsors_pay_together(calls) THEN
        RETURN QUERY SELECT (element ->> 'place')::integer, NULL::text FROM jsonb_array_elements(calls) AS element;
        RETURN;
    END IF;
    FOR call IN
        SELECT * FROM sponsors_requests(calls) AS request ORDER BY request.account_id, request.place
    LOOP
        place := call.place;
        outcome := coalesce(
            sponsors_refusal_of(
                call.sponsor_id, call.policy_id, call.number, call.is_quoted, call.voucher, call.sponsor_credits,
                call.call_credits
            ),
            (SELECT 'sponsor-without-credits' FROM credits_account AS account
             WHERE account.id = call.account_id AND account.balance - account.held < call.sponsor_credits),
            CASE WHEN sponsors_exceed_budget(jsonb_build_array(to_jsonb(call))) THEN 'sponsor-budget' END,
            sponsors_count_call(call.version, call.user_id, call.now, call.sponsor_credits)
        );
        IF outcome IS NULL THEN
            PERFORM sponsors_hold(jsonb_build_array(to_jsonb(call)));
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;

-- Makes the usage of policies and budgets fit the sponsors' holds of these calls, which are named by their users' holds: an open hold
-- counts whole, a captured one as captured, a released or withdrawn one not at all. The caller has locked the sponsors'
-- accounts in an earlier statement. A repeat changes nothing. Usage that is lower than what is taken from it was tampered
-- with: it stops at 0, because settlement must not depend on it, and the nightly comparison reports it.
CREATE OR REPLACE FUNCTION sponsors_recount(holds bigint[]) RETURNS void LANGUAGE sql AS $$
    WITH wanted AS (
        SELECT call.id, call.version_id, call.user_id, call.accepted_at, call.counted_credits, call.counted_calls,
               coalesce(CASE hold.status WHEN 'HELD' THEN hold.amount ELSE hold.captured_amount END, 0)
                   + coalesce(CASE gift.status WHEN 'HELD' THEN gift.amount ELSE gift.captured_amount END, 0) AS credits,
               CASE WHEN hold.status IN ('HELD', 'CAPTURED') OR gift.status IN ('HELD', 'CAPTURED') THEN 1 ELSE 0 END AS calls
        FROM sponsors_sponsoredcall AS call LEFT JOIN credits_hold AS hold ON hold.id = call.sponsor_hold_id
        LEFT JOIN sponsors_firstcredits AS first_credits ON first_credits.call_id = call.id
        LEFT JOIN credits_hold AS gift ON gift.id = first_credits.hold_id
        WHERE call.hold_id = ANY(holds)
    ), kept AS (
        UPDATE sponsors_sponsoredcall AS call SET counted_credits = wanted.credits, counted_calls = wanted.calls
        FROM wanted WHERE call.id = wanted.id
    ), moved AS (
        SELECT part.policy_id, part.scope, part.user_number, part.begins,
               sum(wanted.credits - wanted.counted_credits)::bigint AS credits,
               sum(wanted.calls - wanted.counted_calls)::bigint AS calls
        FROM wanted, LATERAL sponsors_parts_of(wanted.version_id, wanted.user_id, wanted.accepted_at) AS part
        GROUP BY 1, 2, 3, 4
    ), budgeted AS (
        UPDATE sponsors_budgetuse AS used SET credits = greatest(0, used.credits + part.credits)
        FROM (
            SELECT policy.sponsor_id, period.scope, period.begins,
                   sum(wanted.credits - wanted.counted_credits)::bigint AS credits
            FROM wanted JOIN sponsors_policyversion AS version ON version.id = wanted.version_id
            JOIN sponsors_policy AS policy ON policy.id = version.policy_id,
                 LATERAL sponsors_periods_of(wanted.accepted_at) AS period
            GROUP BY 1, 2, 3
        ) AS part
        WHERE used.sponsor_id = part.sponsor_id AND used.scope = part.scope AND used.begins = part.begins
    )
    UPDATE sponsors_usage AS usage
    SET credits = greatest(0, usage.credits + moved.credits), calls = greatest(0, usage.calls + moved.calls)
    FROM moved
    WHERE usage.policy_id = moved.policy_id AND usage.scope = moved.scope
      AND usage.user_number = moved.user_number AND usage.begins = moved.begins
$$;

-- Withdraws the sponsors' holds of calls that were refused later, named by their users' withdrawn holds.
CREATE OR REPLACE FUNCTION sponsors_withdraw(holds bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    of_sponsors bigint[];
BEGIN
    SELECT array_agg(of_sponsor) INTO of_sponsors
    FROM sponsors_sponsoredcall AS call LEFT JOIN sponsors_firstcredits AS first_credits ON first_credits.call_id = call.id,
         unnest(ARRAY[call.sponsor_hold_id, first_credits.hold_id]) AS of_sponsor
    WHERE call.hold_id = ANY(holds) AND of_sponsor IS NOT NULL;
    IF of_sponsors IS NULL THEN
        RETURN;
    END IF;
    PERFORM FROM credits_account
    WHERE id IN (SELECT account_id FROM credits_hold WHERE id = ANY(of_sponsors)) ORDER BY id FOR NO KEY UPDATE;
    PERFORM credits_withdraw_holds(of_sponsors);
    PERFORM sponsors_recount(holds);
    DELETE FROM sponsors_firstcredits WHERE hold_id = ANY(of_sponsors);
    DELETE FROM sponsors_usedvoucher
    WHERE call_id IN (SELECT id FROM sponsors_sponsoredcall WHERE hold_id = ANY(holds));
    DELETE FROM sponsors_sponsoredcall WHERE hold_id = ANY(holds);
END $$;
