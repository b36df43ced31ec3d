"""An index that is made concurrently waits for open transactions, and can be repeated after any interruption."""

import copy
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.db.models import Index

from devstack.services.stack import Services
from gateway.common.models import Lease
from gateway.common.postgresql.base import DatabaseWrapper
from gateway.common.postgresql.schema import SchemaEditor
from tests.journeys.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)

INDEX = Index(fields=["owner"], name="a_tried_index")
FOUND = "SELECT indexrelid, indisvalid FROM pg_index WHERE indexrelid = to_regclass('a_tried_index')"
WAITS = """
SELECT FROM pg_stat_activity
WHERE query LIKE '%INDEX CONCURRENTLY%' AND wait_event = 'virtualxid'
  AND clock_timestamp() - query_start > interval '0.3 s'
"""


class Owner:
    """A session of the tables' owner, which waits for locks as briefly as `migrate` does."""

    def __init__(self, services: Services) -> None:
        place = {"USER": "postgres", "HOST": str(services.postgres.socket_directory)}
        self.wrapper = DatabaseWrapper(copy.deepcopy(connection.settings_dict) | place, alias="default")
        self.wrapper.inc_thread_sharing()
        self.query("SET lock_timeout = '100ms'")

    def query(self, statement: str, *params: Any) -> list[tuple[Any, ...]]:
        with self.wrapper.cursor() as cursor:
            cursor.execute(statement, params)
            return cursor.fetchall() if cursor.description else []

    def add(self) -> None:
        with SchemaEditor(self.wrapper, atomic=False) as editor:
            editor.add_index(Lease, INDEX, concurrently=True)

    def remove(self) -> None:
        with SchemaEditor(self.wrapper, atomic=False) as editor:
            editor.remove_index(Lease, INDEX, concurrently=True)


@pytest.fixture
def owner(services: Services) -> Iterator[Owner]:
    owner = Owner(services)
    yield owner
    owner.query("DROP INDEX IF EXISTS a_tried_index")
    owner.wrapper.close()


def test_an_index_is_made_and_dropped_and_the_limit_stays(owner: Owner) -> None:
    owner.add()
    assert [valid for _, valid in owner.query(FOUND)] == [True]
    owner.remove()
    assert owner.query(FOUND) == []
    assert owner.query("SHOW lock_timeout") == [("100ms",)]


def test_an_invalid_index_is_replaced(owner: Owner) -> None:
    owner.add()
    ((first, _),) = owner.query(FOUND)
    owner.query("UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s", first)
    owner.add()
    ((second, valid),) = owner.query(FOUND)
    assert (second != first, valid) == (True, True)


def test_a_valid_index_that_was_not_recorded_is_kept(owner: Owner) -> None:
    owner.add()
    made = owner.query(FOUND)
    owner.add()
    assert owner.query(FOUND) == made


@pytest.mark.parametrize("is_added", [True, False])
def test_it_waits_for_a_snapshot_that_is_open_for_longer_than_the_limit(
    owner: Owner, *, is_added: bool
) -> None:
    if not is_added:
        owner.add()
    place = owner.wrapper.get_connection_params()
    with (
        psycopg.connect(**place) as other,
        psycopg.connect(**place, autocommit=True) as watching,
        ThreadPoolExecutor(1) as threads,
    ):
        other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT FROM gateway_common_lease")
        running = threads.submit(owner.add if is_added else owner.remove)
        try:
            until("it waits", lambda: running.done() or watching.execute(WAITS).rowcount)
            assert not running.done()
        finally:
            other.rollback()
        running.result()
    assert [valid for _, valid in owner.query(FOUND)] == [True] * is_added
