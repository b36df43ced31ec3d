"""The rows of a query are read a page at a time, from the newest down."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from gateway.admin.exports import Column, cells_of
from tests.factories import UserFactory
from users.models import User

pytestmark = pytest.mark.django_db
_COLUMNS = [Column("profile", "profile_address"), Column("open", "is_active")]


def _all(page_rows: int) -> list[list[object]]:
    return [list(row) for row in cells_of(User.objects.all(), _COLUMNS, page_rows=page_rows)]


@pytest.mark.parametrize("page_rows", [1, 2, 3, 5, 6, 100])
def test_every_row_is_exported_once_for_any_page_size(page_rows: int) -> None:
    users = [UserFactory.create() for _ in range(5)]

    assert _all(page_rows) == [
        ["profile", "open"],
        *([user.profile_address, "yes"] for user in reversed(users)),
    ]


def test_a_page_is_read_only_after_the_previous_one_is_consumed() -> None:
    for _ in range(5):
        UserFactory.create()
    rows = cells_of(User.objects.all(), _COLUMNS, page_rows=2)

    with CaptureQueriesContext(
        connection,
    ) as queries:
        for _ in range(3):
            next(rows)
        assert len(queries) == 1
        next(rows)

    assert [query["sql"].rsplit(" LIMIT ", 1)[1] for query in queries] == ["2", "2"]


def test_rows_added_during_an_export_are_left_out() -> None:
    first = [UserFactory.create() for _ in range(3)]
    rows = cells_of(User.objects.all(), _COLUMNS, page_rows=2)
    next(rows), next(rows)

    UserFactory.create()

    assert [row[0] for row in rows] == [user.profile_address for user in reversed(first[:2])]


def test_a_filter_and_a_list_s_own_order_are_kept_out_of_the_way() -> None:
    users = [UserFactory.create(is_active=number % 2 == 0) for number in range(5)]
    rows = cells_of(User.objects.filter(is_active=True).order_by("username"), _COLUMNS, page_rows=1)

    assert [row[0] for row in list(rows)[1:]] == [
        user.profile_address for user in reversed(users) if user.is_active
    ]
