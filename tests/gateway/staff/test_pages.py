"""Every page of every table opens for whoever may see it, and is refused politely where it does not exist."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.db import models
from django.test import Client, RequestFactory
from django.urls import reverse

from gateway.staff.navigation import GROUPS
from tests.gateway.staff.door import let_in
from tests.gateway.staff.shelf import make

pytestmark = pytest.mark.django_db
MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
_EVERY_MODEL = pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)


def _path(model: type[models.Model], view: str, *args: object) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{view}", args=args)


@_EVERY_MODEL
def test_the_list_the_row_its_history_and_the_empty_form_open(
    client: Client, model: type[models.Model]
) -> None:
    person = let_in(client)
    request = RequestFactory().get("/")
    request.user = person
    row = make(model)

    opened = {view: client.get(_path(model, view, row.pk)).status_code for view in ("change", "history")}
    listed = client.get(_path(model, "changelist"))
    added = client.get(_path(model, "add")).status_code

    assert opened == {"change": 200, "history": 200}
    assert (listed.status_code, str(row.pk) in listed.content.decode()) == (200, True)
    assert added == (200 if admin.site._registry[model].has_add_permission(request) else 403)


@_EVERY_MODEL
def test_searching_for_anything_opens_too(client: Client, model: type[models.Model]) -> None:
    let_in(client)
    make(model)

    for term in ("0x" + "ab" * 20, "0x" + "AB" * 32, "cus_1", "a b", "%", "0", "é\u0000"):
        assert client.get(_path(model, "changelist"), {"q": term}).status_code == 200, term


@_EVERY_MODEL
def test_a_row_that_is_not_there_leads_back_to_the_front_page(
    client: Client, model: type[models.Model]
) -> None:
    let_in(client)

    answer = client.get(_path(model, "change", "no-such-row"))

    assert (answer.status_code, answer.headers["Location"]) == (302, "/admin/")


def test_the_sidebar_names_every_list_once() -> None:
    named = [label for _, places in GROUPS for label, _ in places]

    assert len(named) == len(set(named))
    assert {model._meta.label for model in MODELS} - set(named) == set()


def test_the_sidebar_shows_what_one_may_see_and_nothing_else(client: Client) -> None:
    person = let_in(client, is_superuser=False)
    page = client.get("/admin/password_change/").content.decode()
    assert "/admin/credits/" not in page

    person.user_permissions.set(Permission.objects.filter(codename="view_creditentry"))
    page = client.get("/admin/password_change/").content.decode()

    assert "/admin/credits/creditentry/" in page
    assert "/admin/credits/creditaccount/" not in page
