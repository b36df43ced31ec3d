"""
A database that earlier versions made, with calls in flight, is upgraded while a process of the first one runs.

Its tables are those of the first migrations, its functions those of commit f6c90e2c, before functions were replaced.
A later version, the first with sponsors, has left a call in flight that a sponsor pays.
"""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from devstack.files import PROJECT
from devstack.services.postgres import APPLICATION_ROLE
from devstack.services.stack import Services
from gateway.common import sql_functions

_DATABASE, _CHAIN, _NOW = "upgraded", 4201, "2026-11-26T09:00:00+00:00"
_FUNCTIONS = PROJECT / "tests" / "data" / "functions-of-f6c90e2c.sql"
# The last migration of each app in that commit.
_MADE_WITH = {
    **dict.fromkeys(("users", "rewards", "payments", "checkin"), "0002_starting_data"),
    **dict.fromkeys(
        ("credits", "earnings", "relay", "webhooks", "gateway_admin", "gateway_common"), "0001_initial"
    ),
}
# Does what it reads, a JSON document a line: migrates to these migrations of our apps and to the last ones of
# libraries, or runs a command. Answers each with its error, or an empty text.
_OWNER = """
import json, sys
import django
django.setup()
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

def migrate(made):
    executor = MigrationExecutor(connection)
    executor.migrate([
        (app, made.get(app, name))
        for app, name in executor.loader.graph.leaf_nodes()
        if app in made or "site-packages" in apps.get_app_config(app).path
    ])

for line in sys.stdin:
    asked, error = json.loads(line), ""
    try:
        migrate(asked) if isinstance(asked, dict) else call_command(*asked, stdout=sys.stderr)
    except CommandError as refused:
        error = str(refused)
    print(json.dumps(error), flush=True)
"""
_ROWS = """
INSERT INTO users_user (
    password, is_superuser, is_staff, is_active, date_joined, username, first_name, last_name, email, profile_address
) SELECT '', false, false, true, now(), number, '', '', '', '0x' || lpad(number::text, 40, '0')
FROM generate_series(1, 3) AS number;
INSERT INTO credits_account (user_id, balance, held, open_holds, version) SELECT id, 1000, 0, 0, 0 FROM users_user;
INSERT INTO relay_relayer (
    chain_id, address, is_active, next_account_nonce, mined_account_nonce, balance_wei, timeline, created_at
) SELECT 4201, '0x' || lpad('9', 40, '0'), true, 5, 5, 1e18,
         ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint, now();
INSERT INTO relay_quote (
    id, chain_id, user_id, digest, credits, gas_limit, max_fee_per_gas_wei, expires_at
) SELECT gen_random_uuid(), 4201, id, '0x', 9, 21000, 1, now() + interval '1 hour' FROM users_user;
GRANT USAGE ON SCHEMA public TO gateway_app;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO gateway_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO gateway_app;
REVOKE EXECUTE ON FUNCTION relay_take_slots FROM PUBLIC;
GRANT EXECUTE ON FUNCTION relay_take_slots TO gateway_app;
"""
_TABLES = (
    *("users_user", "credits_account", "credits_hold"),
    *("relay_relaytransaction", "relay_attempt", "relay_relayer", "relay_quote", "relay_unsignedcall"),
    *("sponsors_sponsor", "sponsors_policy", "sponsors_policyversion", "sponsors_sponsoredcall"),
    *("sponsors_usage", "sponsors_vouchersigner", "sponsors_usedvoucher"),
)
# The first version with sponsors, and a call in flight that one of them pays.
_WITH_SPONSORS = {
    "credits": "0011_one_account_of_a_sponsor",
    "relay": "0003_sponsored_quotes",
    "sponsors": "0002_vouchers",
}
_SPONSORED = """
INSERT INTO users_user (
    password, is_superuser, is_staff, is_active, date_joined, username, first_name, last_name, email, profile_address
) VALUES ('', false, false, true, now(), 'guest', '', '', '', '0x' || lpad('4', 40, '0'));
INSERT INTO sponsors_sponsor (slug, name) VALUES ('a-dapp', 'A dApp');
INSERT INTO credits_account (user_id, balance, held, open_holds, version) SELECT id, 1, 0, 1, 0 FROM users_user
WHERE username = 'guest';
INSERT INTO credits_account (sponsor_id, balance, held, open_holds, version)
SELECT id, 1000, 90, 1, 0 FROM sponsors_sponsor;
INSERT INTO sponsors_policy (sponsor_id, name, position) SELECT id, 'guests', 0 FROM sponsors_sponsor;
INSERT INTO sponsors_policyversion (policy_id, number, targets, profiles, listed, share_percent, call_credits)
SELECT id, 1, '[]', 'vouched', '{}', 100, 500 FROM sponsors_policy;
INSERT INTO credits_hold (account_id, key, amount, status)
SELECT account.id, CASE WHEN sponsor_id IS NULL THEN 'relay:1' ELSE 'sponsored:relay:1' END, held, 'HELD'
FROM credits_account AS account LEFT JOIN users_user ON users_user.id = user_id
WHERE coalesce(username, 'guest') = 'guest';
INSERT INTO sponsors_sponsoredcall (
    hold_id, sponsor_hold_id, version_id, user_id, counted_credits, counted_calls, accepted_at
) SELECT own.id, other.id, version.id, users_user.id, 90, 1, now()
FROM credits_hold AS own, credits_hold AS other, sponsors_policyversion AS version, users_user
WHERE own.key = 'relay:1' AND other.key = 'sponsored:relay:1' AND username = 'guest';
INSERT INTO sponsors_usage (policy_id, scope, user_number, begins, credits, calls)
SELECT policy.id, scope, CASE WHEN scope LIKE 'user%' THEN users_user.id ELSE 0 END,
       CASE scope WHEN 'user-day' THEN date_trunc('day', now(), 'UTC') ELSE 'epoch'::timestamptz END, 90, 1
FROM sponsors_policy AS policy, users_user, unnest(ARRAY['user', 'user-day', 'campaign']) AS scope
WHERE username = 'guest';
INSERT INTO sponsors_vouchersigner (sponsor_id, address) SELECT id, '0x' || lpad('5', 40, '0') FROM sponsors_sponsor;
INSERT INTO sponsors_usedvoucher (sponsor_id, voucher_id, signer, call_id)
SELECT sponsor.id, '0x' || lpad('7', 64, '0'), '0x' || lpad('5', 40, '0'), call.id
FROM sponsors_sponsor AS sponsor, sponsors_sponsoredcall AS call;
"""
_Rows = dict[str, list[Any]]


class OldProcess:
    """Accepts calls as a process of that commit does, on one connection that it keeps."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.prepare_threshold = 0

    def take(self, user_id: int, *, key: str, relay_nonce: int, quote: str | None = None) -> dict[str, Any]:
        call = {
            "place": 0,
            "user_id": user_id,
            "key": key,
            "credits": 9,
            "debt_limit": 0,
            "key_manager": "0xkm",
            "controller": f"0xc{user_id}",
            "channel": user_id,
            "relay_nonce": relay_nonce,
            "chain_nonce": 0,
            "worst_cost_wei": 1,
            "risk_wei": 0,
            "quote": quote,
            "now": _NOW,
        }
        policy = {
            "chain": _CHAIN,
            "addresses": ["0x" + "9".zfill(40)],
            "in_flight": 64,
            "followers": 8,
            "share_percent": 100,
            "per_hour": 10,
            "per_day": 50,
            "user_loss_wei": None,
            "service_loss_wei": None,
        }
        cursor = self._connection.cursor(row_factory=psycopg.rows.dict_row)
        cursor.execute(
            "SELECT * FROM relay_take_slots(%s::jsonb, %s::jsonb)", [json.dumps([call]), json.dumps(policy)]
        )
        row = cursor.fetchone()
        assert row is not None
        return row

    def store(self, user_id: int, slot: dict[str, Any], *, relay_nonce: int) -> str:
        """Store the call with the keys that JSON had in that commit; return its hash."""
        transaction_hash = "0x" + secrets.token_hex(32)
        call = {
            "user_id": user_id,
            "profile": "0xp",
            "key_manager": "0xkm",
            "controller": f"0xc{user_id}",
            "digest": transaction_hash,
            "generation": 0,
            "channel": user_id,
            "relay_nonce": relay_nonce,
            "validity": 0,
            "payload": "0a",
            "signature": "0b",
            "is_follower": relay_nonce > 0,
            "relayer_id": slot["relayer_id"],
            "account_nonce": slot["account_nonce"],
            "hold_id": slot["hold_id"],
            "gas_limit": 21_000,
            "max_fee_wei": 7,
            "max_tip_wei": 1,
            "expected_cost": 5,
            "quoted_cost": 9,
            "credits_before": slot["balance"],
            "request_id": "old",
            "accepted_at": _NOW,
            "transaction_hash": transaction_hash,
            "raw": "0c",
        }
        self._connection.execute("SELECT relay_store_calls(%s::jsonb, %s)", [json.dumps([call]), _CHAIN])
        return transaction_hash

    def accept(self, user_id: int, *, key: str, relay_nonce: int, quote: str | None = None) -> str:
        slot = self.take(user_id, key=key, relay_nonce=relay_nonce, quote=quote)
        assert slot["outcome"] == "taken"
        return self.store(user_id, slot, relay_nonce=relay_nonce)

    def close(self) -> None:
        self._connection.close()


class Owner:
    """A Django process that owns the tables. It does several things, because its start takes seconds."""

    def __init__(self, url: str) -> None:
        environment = {
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "DATABASE_URL": url,
            "DATABASE_APPLICATION_ROLE": APPLICATION_ROLE,
        }
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _OWNER],
            env=os.environ | environment,
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def migrate(self, names: dict[str, str]) -> None:
        """Migrate these apps, and those of libraries, as a version did whose last migrations these are."""
        assert self._ask(names) == ""

    def manage(self, *arguments: str) -> str:
        """Run a management command; return its error, or an empty text."""
        return self._ask(arguments)

    def _ask(self, asked: object) -> str:
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        return str(json.loads(self._process.stdout.readline()))

    def end(self) -> None:
        self._process.communicate()


class Upgraded:
    """The database, with what an operator does to it."""

    def __init__(self, services: Services) -> None:
        self._url = services.postgres.url(_DATABASE)
        self.application_url = services.postgres.url(_DATABASE, role=APPLICATION_ROLE)

    @contextmanager
    def owner(self) -> Iterator[Owner]:
        """Run a process of its owner."""
        owner = Owner(self._url)
        try:
            yield owner
        finally:
            owner.end()

    def execute(self, statement: str, *params: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self._url) as connection:
            cursor = connection.execute(statement.encode(), params or None)
            return cursor.fetchall() if cursor.description else []

    def rows(self, tables: Sequence[str] = _TABLES) -> _Rows:
        return {
            table: [row for (row,) in self.execute(f"SELECT to_jsonb(t) FROM {table} AS t ORDER BY id")]  # noqa: S608
            for table in tables
        }


@pytest.fixture
def database(services: Services) -> Iterator[Upgraded]:
    """A new database without tables."""
    services.postgres.ensure_database(_DATABASE, template="template1")
    yield Upgraded(services)
    with psycopg.connect(services.postgres.url("postgres"), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {_DATABASE} WITH (FORCE)")


def test_a_database_with_calls_in_flight_is_upgraded_beside_its_processes(database: Upgraded) -> None:
    with database.owner() as owner:
        owner.migrate(_MADE_WITH)
        database.execute(_FUNCTIONS.read_text())
        database.execute(_ROWS)
        old = OldProcess(database.application_url)
        one, two, three = [user for (user,) in database.execute("SELECT id FROM users_user ORDER BY id")]
        ((quote,),) = database.execute("SELECT id::text FROM relay_quote WHERE user_id = %s", two)
        first = old.accept(one, key="first", relay_nonce=0)
        old.accept(one, key="follower", relay_nonce=1)
        old.accept(two, key="quoted", relay_nonce=0, quote=quote)
        unfinished = old.take(three, key="unfinished", relay_nonce=0)
        owner.migrate(_WITH_SPONSORS)
    database.execute(_SPONSORED)
    before = database.rows()

    with database.owner() as owner:
        assert owner.manage("migrate") == ""
        assert _kept(database.rows(), before) == before
        assert owner.manage("check", "--database", "default") == ""
        database.execute("ALTER FUNCTION relay_take_slots SECURITY DEFINER")
        refused = owner.manage("check", "--database", "default")
        assert ("gateway.E001" in refused, "relay_take_slots" in refused) == (True, True)
        database.execute("ALTER FUNCTION relay_take_slots SECURITY INVOKER")
    for name, text in sql_functions.FUNCTIONS.items():
        ((body, may),) = database.execute(
            "SELECT prosrc, has_function_privilege(%s, oid, 'EXECUTE') FROM pg_proc WHERE proname = %s",
            APPLICATION_ROLE,
            name,
        )
        assert (text.split("$$")[1], may) == (body, True)
    ((others,),) = database.execute("SELECT proacl::text FROM pg_proc WHERE proname = 'relay_take_slots'")
    assert not others.startswith("{=X")
    # The older process keeps running: it finishes its call, accepts another, and recognises a repeat.
    old.store(three, unfinished, relay_nonce=0)
    old.accept(three, key="later", relay_nonce=1)
    repeated = old.take(one, key="first", relay_nonce=0)
    assert (repeated["outcome"], repeated["transaction_hash"]) == ("repeated", first)
    old.close()
    rows = database.rows()
    assert {
        table: rows[table][: len(before[table])] for table in ("relay_relaytransaction", "relay_attempt")
    } == {table: before[table] for table in ("relay_relaytransaction", "relay_attempt")}
    assert [call["status"] for call in rows["relay_relaytransaction"]] == ["Pending"] * 5
    assert [attempt["account_nonce"] for attempt in rows["relay_attempt"]] == [5, 6, 7, 8, 9]
    assert [account["held"] for account in rows["credits_account"]] == [18, 9, 18, 0, 90]
    _end_the_sponsored_call(database)


def _end_the_sponsored_call(database: Upgraded) -> None:
    """Release what is held for it; its policy's counters follow."""
    [signer] = database.rows(["sponsors_vouchersigner"])["sponsors_vouchersigner"]
    assert signer["removed_at"] is None
    ((own, others),) = database.execute("SELECT hold_id, sponsor_hold_id FROM sponsors_sponsoredcall")
    database.execute(
        "UPDATE credits_hold SET status = 'RELEASED', closed_at = now() WHERE id IN (%s, %s)", own, others
    )
    database.execute("SELECT sponsors_recount(ARRAY[%s])", own)
    usage = database.rows(["sponsors_usage"])["sponsors_usage"]
    assert [(row["credits"], row["calls"]) for row in usage] == [(0, 0)] * 3


def _kept(rows: _Rows, before: _Rows) -> _Rows:
    """Return the rows without the columns that the upgrade added."""
    return {
        table: [
            {name: value for name, value in row.items() if name in old}
            for row, old in zip(rows[table], olds, strict=True)
        ]
        for table, olds in before.items()
    }
