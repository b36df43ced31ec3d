"""A large history, written by SQL: a million ledger entries and 200,000 relay transactions of 10,000 people."""

import secrets

from django.db import connection

from gateway.common.fields import checksum
from relay.models import Relayer
from users.models import User

PEOPLE, EACH = 10_000, 100
# Every fifth entry pays for a relay call. One person has this many entries in addition.
HEAVY = 50_000

_ACCOUNTS = """
INSERT INTO credits_account
    (user_id, balance, held, open_holds, version, created_at)
SELECT id, 2 * %(each)s - 3 * (%(each)s / 5), 0, 0, %(each)s, now() - interval '100 days'
FROM users_user WHERE profile_address IS NOT NULL
"""
_PROGRESS = """
INSERT INTO rewards_progress (user_id, permanent_experience, subscriber_experience)
SELECT user_id, 0, 0 FROM credits_account
"""
_ENTRIES = """
INSERT INTO credits_entry
    (account_id, amount, source, key, balance_before, balance_after, account_version, reason, created_at)
SELECT account.id, CASE WHEN n %% 5 = 0 THEN -1 ELSE 2 END,
       CASE n %% 5 WHEN 0 THEN 'RELAY_TRANSACTION' WHEN 1 THEN 'VIDEO_ADS' WHEN 2 THEN 'OFFERWALL' ELSE 'SURVEYS' END,
       'bench:' || account.id || ':' || n, 2 * (n - 1) - 3 * ((n - 1) / 5), 2 * n - 3 * (n / 5), n, '',
       now() - interval '90 days' * (1 - (n - random()) / %(each)s)
FROM generate_series(1, %(each)s) AS n, credits_account AS account ORDER BY n, random()
"""
_HEAVY = """
WITH account AS (SELECT id, balance, version FROM credits_account ORDER BY id LIMIT 1), posted AS (
    INSERT INTO credits_entry
        (account_id, amount, source, key, balance_before, balance_after, account_version, reason, created_at)
    SELECT id, 1, 'SURVEYS', 'heavy:' || n, balance + n - 1, balance + n, version + n, '', now()
    FROM account, generate_series(1, %(heavy)s) AS n
)
UPDATE credits_account AS kept SET balance = kept.balance + %(heavy)s, version = kept.version + %(heavy)s
FROM account WHERE kept.id = account.id
"""
_HOLDS = """
INSERT INTO credits_hold
    (account_id, key, amount, status, captured_amount, entry_id, created_at, closed_at)
SELECT account_id, 'relay:' || key, 2, 'CAPTURED', 1, id, created_at, created_at
FROM credits_entry WHERE source = 'RELAY_TRANSACTION' ORDER BY id
"""
_CALLS = """
INSERT INTO relay_relaytransaction
    (chain_id, user_id, profile_address, key_manager_address, controller_address, digest, generation, channel,
     relay_nonce, validity, payload, signature, is_follower, relayer_id, hold_id, transaction_hash, gas_limit,
     expected_cost, real_cost, credits_before, status, terminal_status, failure_code, failure_detail, request_id,
     created_at, settled_at)
SELECT %(chain)s, person.id, person.profile_address, person.profile_address, person.profile_address, hash.digest,
       0, 0, hold.id, 0, '\\x00', '\\x00', false, %(relayer)s, hold.id, hash.digest, 100000, 2, 1, 100,
       CASE WHEN hold.id %% 50 = 0 THEN 'Failed' ELSE 'Success' END, '', '', '', md5('request' || hold.id),
       hold.created_at, hold.closed_at
FROM credits_hold AS hold JOIN credits_account AS account ON account.id = hold.account_id
JOIN users_user AS person ON person.id = account.user_id
CROSS JOIN LATERAL (SELECT '0x' || md5('a' || hold.id) || md5('b' || hold.id) AS digest) AS hash
ORDER BY hold.id
"""
_ATTEMPTS = """
INSERT INTO relay_attempt
    (chain_id, relay_transaction_id, relayer_id, account_nonce, sequence, kind, status, transaction_hash, raw,
     gas_limit, max_fee_per_gas_wei, max_priority_fee_per_gas_wei, node_message, block_number, block_hash, succeeded,
     gas_used, effective_gas_price_wei, created_at, first_sent_at, sent_at, mined_at)
SELECT chain_id, id, relayer_id, id, 0, 'call', 'mined', transaction_hash, '\\x00', gas_limit, 1, 1, '', id, digest,
       status = 'Success', 1000, 1000000000, created_at, created_at, created_at, created_at + interval '6 seconds'
FROM relay_relaytransaction ORDER BY id
"""
_POSTBACKS = """
INSERT INTO earnings_postback
    (network_id, external_id, kind, original_id, user_id, state, amount, rate, badge_bonus, modifier_bonus, credits,
     entry_id, received_at, is_conflicting, raw, headers, payload_hash, request_id)
SELECT (SELECT id FROM earnings_adnetwork LIMIT 1), md5('event' || entry.id), 'CREDIT', md5('event' || entry.id),
       account.user_id, 'AVAILABLE', 2, 1, 0, 0, 2, entry.id, entry.created_at, false, '\\x00', '{}', '',
       md5('postback' || entry.id)
FROM credits_entry AS entry JOIN credits_account AS account ON account.id = entry.account_id
WHERE entry.source = 'VIDEO_ADS' ORDER BY entry.id
"""
_NETWORK = """
INSERT INTO earnings_adnetwork
    (slug, is_enabled, is_weak, path_token_hash, current_secret, previous_secret, rate, allowed_addresses,
     allowed_ad_units, per_event_cap, daily_cap, hold_hours)
VALUES ('bench', false, false, '', '', '', 1, '{}', '{}', 25000, 50000, 0)
"""
_EVENTS = """
INSERT INTO payments_stripeevent
    (stripe_event_id, type, api_version, object_id, raw_body, status, outcome, attempts, last_error, received_at,
     next_attempt_at, processed_at)
SELECT 'evt_' || md5(n::text), 'invoice.paid', '', 'in_' || md5(n::text), '\\x00', 'processed', 'applied', 1, '',
       now(), now(), now() FROM generate_series(1, 50000) AS n
"""


def fill_ledger(people: int, each: int) -> None:
    """Write this many entries for each person, and nothing else."""
    _write_people(people)
    with connection.cursor() as cursor:
        for statement in (_ACCOUNTS, _ENTRIES):
            cursor.execute(statement, {"each": each})
        cursor.execute("VACUUM ANALYZE")


def _write_people(people: int) -> None:
    addresses = [checksum("0x" + secrets.token_hex(20)) for _ in range(people)]
    User.objects.bulk_create(
        [User(username=address, profile_address=address) for address in addresses], batch_size=2_000
    )


def fill(people: int = PEOPLE) -> None:
    """Write the rows and run ANALYZE."""
    _write_people(people)
    relayer = Relayer.objects.create(
        address=checksum("0x" + secrets.token_hex(20)), next_account_nonce=0, mined_account_nonce=0
    )
    sizes = {"each": EACH, "heavy": HEAVY, "chain": relayer.chain_id, "relayer": relayer.pk}
    steps = (_ACCOUNTS, _PROGRESS, _ENTRIES, _HEAVY, _HOLDS, _CALLS, _ATTEMPTS, _NETWORK, _POSTBACKS, _EVENTS)
    with connection.cursor() as cursor:
        for statement in steps:
            cursor.execute(statement, sizes if "%(" in statement else None)
        cursor.execute("VACUUM ANALYZE")
