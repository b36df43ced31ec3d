"""
Every list takes the same few queries however many rows there are, counts none of them to the end, and is a small page.

`query_counts.json` holds the number per list. After a change of a list, write down its new number,
and why in the commit; `RECORD_QUERY_COUNTS=1` writes the file.
"""

import json
import os
import random
from pathlib import Path
from urllib.parse import quote

import pytest
from django.contrib import admin
from django.db import connection, models
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from relay.models import RelayTransaction
from tests.factories import make
from tests.staff import log_in_staff

pytestmark = pytest.mark.django_db
_FILE = Path(__file__).with_name("query_counts.json")
_FEW, _MANY = 3, 6
# Of a page with twenty rows.
_MOST_BYTES = 60_000
# So short that its filters may look at every row.
_WRITTEN_BY_HAND = {"gateway_admin.StaffAction", "gateway_admin.Pause"}
MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)


def _opened(client: Client, model: type[models.Model]) -> tuple[list[str], int]:
    """Open the list; return its queries, and how many bytes the page has."""
    path = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    with CaptureQueriesContext(connection) as captured:
        response = client.get(path)
    assert response.status_code == 200
    return [query["sql"] for query in captured], len(response.content)


def _queries(client: Client, model: type[models.Model]) -> list[str]:
    return _opened(client, model)[0]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_a_list_takes_as_many_queries_for_many_rows_as_for_few(
    client: Client, model: type[models.Model]
) -> None:
    log_in_staff(client)
    for _ in range(_FEW):
        make(model)
    _queries(client, model)  # fills caches that live longer than a request

    few, fewer_bytes = _opened(client, model)
    for _ in range(_MANY - _FEW):
        make(model)
    many, more_bytes = _opened(client, model)
    of_a_row = (more_bytes - fewer_bytes) // (_MANY - _FEW)

    label, baselines = model._meta.label, json.loads(_FILE.read_text())
    if os.environ.get("RECORD_QUERY_COUNTS"):
        baselines[label] = len(few)
        _FILE.write_text(json.dumps(baselines, indent=2, sort_keys=True) + "\n")
    assert len(many) == len(few), "\n".join(many)
    assert len(few) == baselines.get(label), f"{label}: write {len(few)} into {_FILE.name} if that is right"
    assert more_bytes + (20 - _MANY) * of_a_row < _MOST_BYTES, f"{of_a_row} bytes a row"
    assert [sql for sql in many if "COUNT(" in sql and "LIMIT" not in sql] == []
    assert [sql for sql in many if "DISTINCT" in sql] == [] or label in _WRITTEN_BY_HAND


# What a row carries for machines, which no list shows.
_LONG = {"findings", "headers"}


def _long_columns(model: type[models.Model]) -> list[str]:
    return [
        field.name
        for field in model._meta.concrete_fields
        if field.name in _LONG or (isinstance(field, models.BinaryField) and field.max_length is None)
    ]


@pytest.mark.parametrize(
    "model", [model for model in MODELS if _long_columns(model)], ids=lambda model: model._meta.label
)
def test_a_list_reads_nothing_long_that_it_does_not_show(client: Client, model: type[models.Model]) -> None:
    log_in_staff(client)
    row = make(model)
    table = model._meta.db_table
    read = [sql for sql in _queries(client, model) if f'FROM "{table}"' in sql and "COUNT(" not in sql]
    assert read
    for column in _long_columns(model):
        assert not any(f'"{table}"."{column}"' in sql for sql in read), column
    # The row's page reads it whole, and no column by itself.
    page = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_change", args=[row.pk])
    with CaptureQueriesContext(connection) as captured:
        assert client.get(page).status_code == 200
    whole = [query["sql"] for query in captured if f'WHERE "{table}"."id" = {row.pk}' in query["sql"]]
    assert whole
    assert all(f'"{table}"."{column}"' in sql for column in _long_columns(model) for sql in whole)


def test_a_list_joins_nothing_that_it_does_not_show(client: Client) -> None:
    log_in_staff(client)
    make(RelayTransaction)
    [read] = [sql for sql in _queries(client, RelayTransaction) if '"relay_relaytransaction"."id",' in sql]
    assert "JOIN" not in read


def test_no_count_is_kept_of_a_list_that_was_removed() -> None:
    assert sorted(json.loads(_FILE.read_text())) == [model._meta.label for model in MODELS]


@pytest.mark.django_db(transaction=True)
def test_an_address_that_compares_a_column_with_what_it_cannot_have_shows_the_list_without_it(
    client: Client,
) -> None:
    client.raise_request_exception = False
    log_in_staff(client)
    served = set()
    for model in MODELS:
        path = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        column = random.choice(model._meta.concrete_fields).name
        for name, text in (
            ("q", "a\0b"),
            (f"{column}__exact", random.choice(["\0", "", "\ud800", "x" * 99])),
        ):
            sent = quote(text.encode("utf-8", "surrogatepass"))
            served.add(client.get(path, QUERY_STRING=f"{name}={sent}").status_code)
            assert max(served) < 500, (path, name, text)
    assert served >= {200, 302}
