"""
Every list can be searched for anything, and a page that does not exist is refused politely.

A list is counted as far as anybody turns pages, and no further.
"""

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.core.paginator import EmptyPage
from django.db import connection, models
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from gateway.admin import base, navigation
from gateway.admin.base import BoundedPaginator
from tests.factories import UserFactory, make
from tests.staff import log_in_staff
from users.models import User

MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)


def _path(model: type[models.Model], view: str, *args: object) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{view}", args=args)


@pytest.mark.usefixtures("short_sidebar")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_searching_for_anything_opens_too(
    client: Client, rf: RequestFactory, model: type[models.Model]
) -> None:
    person, model_admin = log_in_staff(client), admin.site._registry[model]
    make(model)

    assert client.get(_path(model, "changelist"), {"q": "é\u0000"}).status_code == 200
    # What a term does to a list it does before the page is rendered.
    for term in ("0x" + "AB" * 32, "0x" + "ab" * 20, "cus_1", "a b", "%", "0"):
        request = rf.get("/", {"q": term})
        request.user = person
        assert list(model_admin.get_changelist_instance(request).result_list) is not None, term


def test_a_row_that_is_not_there_leads_back_to_the_front_page(client: Client) -> None:
    log_in_staff(client)

    for model in MODELS:
        response = client.get(_path(model, "change", "no-such-row"))
        assert (response.status_code, response.headers["Location"]) == (302, "/admin/"), model


def test_every_list_is_in_one_group() -> None:
    labels = [label for icons in navigation._groups.values() for label in icons]

    assert len(labels) == len(set(labels))
    assert {model._meta.label for model in MODELS} == set(labels)


def test_the_page_with_all_lists_has_only_permitted_ones(client: Client) -> None:
    person = log_in_staff(client, is_superuser=False)
    assert "/admin/credits/" not in client.get("/admin/lists/").content.decode()

    person.user_permissions.set(Permission.objects.filter(codename="view_creditaccount"))
    page = client.get("/admin/lists/").content.decode()

    assert "/admin/credits/creditaccount/" in page
    assert "/admin/credits/creditentry/" not in page


pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _seven_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "FAR_ENOUGH", 7)


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


def test_a_list_notes_that_it_has_more_rows_than_pages(client: Client) -> None:
    log_in_staff(client)
    for _ in range(7):
        UserFactory.create()

    page = client.get("/admin/users/user/").content.decode()
    filtered = client.get("/admin/users/user/", {"is_staff__exact": "1"}).content.decode()

    assert "the first 7 users; search or filter to find others" in page
    assert "1 user" in filtered
