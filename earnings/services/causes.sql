-- name: caused
-- The entries of credited postbacks, without what reversals took before they were posted, and of reversals.
SELECT adapter.source, 'earning:' || network.slug || ':' || credit.external_id, account.id,
       credit.credits - coalesce(earlier.credits, 0)::bigint
FROM earnings_postback AS credit
JOIN earnings_adnetwork AS network ON network.id = credit.network_id
JOIN (VALUES @sources@) AS adapter (slug, source) ON adapter.slug = network.slug
JOIN credits_account AS account ON account.user_id = credit.user_id
LEFT JOIN (
    SELECT network_id, original_id, sum(credits) AS credits FROM earnings_postback
    WHERE kind = 'REVERSAL' AND state = 'REVERSED' AND entry_id IS NULL GROUP BY 1, 2
) AS earlier ON (earlier.network_id, earlier.original_id) = (credit.network_id, credit.original_id)
WHERE credit.kind = 'CREDIT'
  AND (credit.entry_id IS NOT NULL
       OR credit.state = 'AVAILABLE' AND credit.credits > coalesce(earlier.credits, 0))
UNION ALL
SELECT 'EARNING_REVERSAL', 'reversed-earning:' || network.slug || ':' || reversal.external_id, account.id,
       -reversal.credits
FROM earnings_postback AS reversal
JOIN earnings_adnetwork AS network ON network.id = reversal.network_id
JOIN credits_account AS account ON account.user_id = reversal.user_id
WHERE reversal.kind = 'REVERSAL' AND reversal.entry_id IS NOT NULL

-- name: rules
-- Earnings whose credits do not follow from their amount, rate and bonuses.
SELECT 'an earning is its amount at its rate', credits::text, worth::text,
       jsonb_build_object('postback', id::text, 'entry', entry_id::text)
FROM (
    SELECT *, least(floor(amount * rate * (1 + badge_bonus + modifier_bonus)), @largest@) AS worth
    FROM earnings_postback WHERE kind = 'CREDIT' AND entry_id IS NOT NULL
) AS credited
WHERE credits <> worth
