"""The rehearsed migrations, and how one is interrupted while it waits for a lock."""

from collections.abc import Callable

import psycopg

from devstack.services.server import wait_until

# Settings with which `migrate` knows them (`devstack.settings`).
SETTINGS = {"MIGRATION_MODULES": {"relay": "lab.rehearsals.migrations.relay"}}
_OLDEST = "(SELECT min(id) FROM relay_relaytransaction)"
# The migrations in order, each with a statement that keeps it waiting until the statement's transaction ends.
IN_THE_WAY = {
    "rehearsed_1_column": "SELECT FROM relay_relaytransaction",
    "rehearsed_2_index": f"UPDATE relay_relaytransaction SET request_id = 'open' WHERE id = {_OLDEST}",  # noqa: S608
    "rehearsed_3_rows": f"SELECT FROM relay_relaytransaction WHERE id = {_OLDEST} FOR UPDATE",
    "rehearsed_4_constraint": "LOCK TABLE relay_relaytransaction IN SHARE UPDATE EXCLUSIVE MODE",
}
# A process needs a minute to start on a busy machine.
_SECONDS = 300
_END = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND usename = current_user AND wait_event_type = 'Lock'
"""


def interrupt(url: str, *, is_over: Callable[[], bool] = lambda: False) -> None:
    """Wait until a session of the owner, whose URL this is, waits for a lock, and end it; or until all is over."""
    with psycopg.connect(url, autocommit=True) as connection:
        wait_until(
            lambda: is_over() or bool(connection.execute(_END).fetchall()),
            "no migration waits for a lock",
            seconds=_SECONDS,
        )
