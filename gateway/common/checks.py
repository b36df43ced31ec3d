"""
System checks of settings that are made in PostgreSQL itself, and decorators that the checks of several apps share.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.db import DEFAULT_DB_ALIAS, connection

from gateway.common import db, sequences
from gateway.common.statements import Statements

# How long `check --deploy` waits for all other servers together.
OTHERS_SECONDS = 10.0
_Check = Callable[[], list[CheckMessage]]
# The checks that query the database.
_of_database: list[_Check] = []
# The checks that query another server, each with the warning to give if the server does not respond.
_others: list[tuple[_Check, Warning]] = []


class _Sql(Statements, file=__file__):
    settings: str


def asks_the_database(check: _Check) -> _Check:
    """Decorator: run the check with `--deploy`, if the database responds."""
    _of_database.append(check)
    return check


@register("gateway", deploy=True)
def database(**_: Any) -> list[CheckMessage]:
    """Run the checks that query the database, or warn once if it is unavailable: each query would wait for it."""
    if reason := db.connection_error(DEFAULT_DB_ALIAS):
        return [Warning(reason, id="gateway.W001")]
    return [message for check in _of_database for message in check()]


@asks_the_database
def promises_are_safe() -> list[CheckMessage]:
    """Warn if the failure of one machine could lose a call whose hash was already returned."""
    values = read_settings()
    warnings: list[CheckMessage] = []
    if values["synchronous_commit"] in {"off", "local"} and (
        values["synchronous_commit"] == "off" or settings.DATABASE_SYNCHRONOUS_STANDBY
    ):
        text = f"synchronous_commit is {values['synchronous_commit']}: a commit returns before it is durable."
        warnings.append(Warning(text, hint="ALTER ROLE … RESET synchronous_commit", id="gateway.W002"))
    if settings.DATABASE_SYNCHRONOUS_STANDBY and not values["synchronous_standby_names"]:
        text = "DATABASE_SYNCHRONOUS_STANDBY is set, but PostgreSQL waits for no standby."
        hint = "Set synchronous_standby_names, or have Patroni do it with synchronous_mode."
        warnings.append(Warning(text, hint=hint, id="gateway.W003"))
    return warnings


@asks_the_database
def sequences_are_ahead() -> list[CheckMessage]:
    """Report tables to which no row can be added, as after a logical copy."""
    tables = sequences.tables_behind()
    text = "The sequences of these tables are behind their ids, so no row can be added: {}."
    hint = "docs/postgresql.md has the statement that sets all of them."
    return [Error(text.format(", ".join(tables)), hint=hint, id="gateway.E002")] if tables else []


@asks_the_database
def limits_hold_behind_a_pooler() -> list[CheckMessage]:
    """Warn if statements have no timeout, because a transaction pooler does not pass one on."""
    if settings.DATABASE_POOLING == "session":
        return []
    limit = read_settings()["statement_timeout"]
    if limit not in {"", "0"}:
        return []
    text = "DATABASE_POOLING is transaction, but the processes' role has no statement_timeout."
    hint = "Run migrate with DATABASE_APPLICATION_ROLE, which sets the limits of that role."
    return [Warning(text, hint=hint, id="gateway.W004")]


@register("gateway", deploy=True)
def every_variable_is_read(**_: Any) -> list[CheckMessage]:
    """Warn of each variable that looks like a setting, but is not one, and of proxies."""
    text = "{} is set, but this service does not use it."
    hint = "docs/configuration.md lists every setting; connections never go through a proxy."
    return [Warning(text.format(name), hint=hint, id="gateway.W005") for name in settings.UNREAD_VARIABLES]


def asks_another_server(silent: Warning) -> Callable[[_Check], _Check]:
    """Decorator: run the check with `--deploy`; if the server does not respond in time, the result is `silent`."""

    def registered(check: _Check) -> _Check:
        _others.append((check, silent))
        return check

    return registered


class _Running(threading.Thread):
    """Runs a check in a daemon thread, so that it does not keep the process from exiting."""

    def __init__(self, check: _Check, silent: Warning) -> None:
        super().__init__(name="check", daemon=True)
        self._check = check
        self._result: list[CheckMessage] | Exception = [silent]

    def run(self) -> None:
        try:
            self._result = self._check()
        except Exception as error:  # noqa: BLE001 - raised in the thread that waits
            self._result = error

    def result(self, *, deadline: float) -> list[CheckMessage]:
        self.join(max(0.0, deadline - time.monotonic()))
        if isinstance(self._result, Exception):
            raise self._result
        return self._result


@register("gateway", deploy=True)
def other_servers(**_: Any) -> list[CheckMessage]:
    """Run the checks that query nodes, Stripe and other servers in parallel, because each of them may not respond."""
    deadline = time.monotonic() + OTHERS_SECONDS
    running = [_Running(*other) for other in _others]
    for check in running:
        check.start()
    return [message for check in running for message in check.result(deadline=deadline)]


def read_settings() -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute(_Sql.settings, [settings.DATABASE_APPLICATION_ROLE])
        return dict(cursor.fetchall())
