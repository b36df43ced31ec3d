"""An advisory lock keeps a second session out, and only while it is held."""

import secrets
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from billiard.exceptions import SoftTimeLimitExceeded
from django.db import connection

from gateway.common.db import try_advisory_lock

pytestmark = pytest.mark.django_db(transaction=True)


def acquired_elsewhere(name: str) -> bool:
    def attempt() -> bool:
        try:
            with try_advisory_lock(name) as acquired:
                return acquired
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(attempt).result()


def test_a_held_lock_is_refused_to_others_and_free_afterwards() -> None:
    name = secrets.token_hex()
    with try_advisory_lock(name) as acquired:
        assert acquired
        assert not acquired_elsewhere(name)
        assert acquired_elsewhere(secrets.token_hex())
    assert acquired_elsewhere(name)


def test_a_failure_inside_frees_the_lock() -> None:
    name = secrets.token_hex()
    with pytest.raises(ZeroDivisionError), try_advisory_lock(name):
        raise ZeroDivisionError
    assert acquired_elsewhere(name)


@pytest.mark.parametrize("question", ["pg_try_advisory_lock", "pg_advisory_unlock"])
@pytest.mark.parametrize("is_late", [False, True])
def test_a_time_limit_in_the_middle_of_a_question_leaves_no_lock_behind(question: str, is_late: bool) -> None:
    name = secrets.token_hex()

    def strike(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if question not in sql:
            return execute(sql, params, many, context)
        if is_late:
            execute(sql, params, many, context)
        raise SoftTimeLimitExceeded

    with (
        pytest.raises(SoftTimeLimitExceeded),
        connection.execute_wrapper(strike),
        try_advisory_lock(name),
    ):
        pass
    assert acquired_elsewhere(name)
