"""A list is counted as far as anybody turns pages, and no further."""

import pytest
from django.core.paginator import EmptyPage
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from gateway.common import pages
from gateway.common.pages import BoundedPaginator
from tests.factories import UserFactory
from tests.gateway.staff.door import let_in
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _seven_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "FAR_ENOUGH", 7)


def _book(rows: int) -> BoundedPaginator:
    for _ in range(rows):
        UserFactory.create()
    return BoundedPaginator(User.objects.order_by("-date_joined"), 3)


@pytest.mark.parametrize("rows", [0, 1, 6])
def test_a_short_list_is_counted_exactly(rows: int) -> None:
    book = _book(rows)

    assert (book.count, book.is_cut) == (rows, False)


@pytest.mark.parametrize("rows", [7, 8, 12])
def test_a_long_list_is_counted_no_further_than_needed(rows: int) -> None:
    book = _book(rows)

    with CaptureQueriesContext(connection) as queries:
        counted = book.count

    assert (counted, book.is_cut, book.num_pages) == (7, True, 3)
    assert [query["sql"].endswith("LIMIT 7) subquery") for query in queries] == [True]
    with pytest.raises(EmptyPage):
        book.page(4)


def test_the_order_is_not_computed_for_a_count() -> None:
    book = _book(2)

    with CaptureQueriesContext(connection) as queries:
        assert book.count == 2

    assert "ORDER BY" not in queries[0]["sql"]


def test_a_list_says_when_there_are_more_rows_than_pages(client: Client) -> None:
    let_in(client)
    for _ in range(7):
        UserFactory.create()

    page = client.get("/admin/users/user/").content.decode()
    found = client.get("/admin/users/user/", {"is_staff__exact": "1"}).content.decode()

    assert "the first 7 users; search or filter for the others" in page
    assert "1 user" in found
