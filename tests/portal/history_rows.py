"""Long histories, written past the services so that they are quick to make and yet pass every constraint."""

import secrets

from credits.services import entries
from tests.credits.rows import query
from tests.database import tamper
from tests.factories import RelayerFactory
from users.models import User

_ENTRIES = """
WITH account AS (
    SELECT id, balance, version FROM credits_account WHERE user_id = %(user)s FOR UPDATE
), posted AS (
    INSERT INTO credits_entry
        (account_id, amount, source, key, balance_before, balance_after, account_version, reason)
    SELECT id, 1, 'SURVEYS', %(salt)s || n, balance + n - 1, balance + n, version + n, ''
    FROM account, generate_series(1, %(count)s) AS n
)
UPDATE credits_account AS kept
SET balance = account.balance + %(count)s, version = account.version + %(count)s
FROM account WHERE kept.id = account.id
"""

_TRANSACTIONS = """
WITH account AS (
    SELECT id, balance, version FROM credits_account WHERE user_id = %(user)s FOR UPDATE
), charge AS (
    INSERT INTO credits_entry
        (account_id, amount, source, key, balance_before, balance_after, account_version, reason)
    SELECT id, -1, 'RELAY_TRANSACTION', %(salt)s || n, balance - n + 1, balance - n, version + n, ''
    FROM account, generate_series(1, %(count)s) AS n
    RETURNING id, account_id, account_version, balance_before
), held AS (
    INSERT INTO credits_hold (account_id, key, amount, status, captured_amount, entry_id, closed_at)
    SELECT account_id, %(salt)s || account_version, 1, 'CAPTURED', 1, id, now() FROM charge
    RETURNING id, entry_id
), moved AS (
    UPDATE credits_account AS kept
    SET balance = account.balance - %(count)s, version = account.version + %(count)s
    FROM account WHERE kept.id = account.id
)
INSERT INTO relay_relaytransaction
    (chain_id, user_id, profile_address, key_manager_address, controller_address, digest, generation, channel,
     relay_nonce, validity, payload, signature, is_follower, relayer_id, hold_id, transaction_hash, gas_limit,
     credit_wei, expected_cost, real_cost, credits_before, status, terminal_status, failure_code, failure_detail,
     request_id, created_at, settled_at)
SELECT %(chain)s, %(user)s, %(profile)s, %(profile)s, %(profile)s, hash.digest, 0, 0, charge.account_version,
       0, '', '', false, %(relayer)s, held.id, hash.digest, 21000, 1, 2,
       1, charge.balance_before, 'Success', '', '', '', '', now(), now()
FROM charge JOIN held ON held.entry_id = charge.id
CROSS JOIN LATERAL (
    SELECT '0x' || md5(%(salt)s || charge.id) || md5(charge.id || %(salt)s) AS digest
) AS hash
"""

_MANY = 1_000


def earned(user: User, count: int) -> None:
    """Post `count` surveys of one credit each."""
    entries.open_account(user_id=user.pk)
    _execute(_ENTRIES, user=user.pk, count=count)


def relayed(user: User, count: int) -> None:
    """Settle `count` relay transactions of one credit each."""
    entries.open_account(user_id=user.pk)
    relayer = RelayerFactory.create()
    _execute(
        _TRANSACTIONS,
        chain=relayer.chain_id,
        user=user.pk,
        profile=user.profile_address,
        relayer=relayer.pk,
        count=count,
    )


def _execute(statement: str, *, count: int, **params: object) -> None:
    written = _inline(statement, {**params, "count": count, "salt": secrets.token_hex(8)})
    if count < _MANY:
        query(written)
        return
    # Rows of one statement refer to each other correctly, so foreign keys of this many need no check.
    tamper(written)
    # PostgreSQL would find out sooner or later that the tables are not empty any more; a test cannot wait for that.
    tamper("ANALYZE credits_entry, credits_hold, relay_relaytransaction")


def _inline(statement: str, params: dict[str, object]) -> str:
    """Write the values into the statement: they are ours, and PostgreSQL need not guess their types."""
    return statement % {name: _literal(value) for name, value in params.items()}


def _literal(value: object) -> str:
    return str(value) if isinstance(value, int) else f"'{value}'"
