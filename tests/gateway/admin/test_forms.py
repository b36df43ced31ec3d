"""Forms of the admin ask for what staff decide, and for nothing that the service fills in."""

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin import ModelAdmin
from django.db import models
from django.db.models.functions import Now
from django.http import HttpRequest
from django.test import RequestFactory

from gateway.common.fields import ClockField
from users.models import User

pytestmark = pytest.mark.django_db
PAGES = sorted(admin.site._registry.values(), key=lambda page: page.opts.label)


@pytest.fixture
def request_of_all(rf: RequestFactory) -> HttpRequest:
    """A request of somebody who may do everything."""
    request = rf.get("/")
    request.user = User(pk=1, is_staff=True, is_superuser=True)
    return request


def _filled_in(page: ModelAdmin[Any]) -> set[str]:
    """Return the columns that the service or the database fills in."""
    return {
        field.name
        for field in page.opts.concrete_fields
        if isinstance(field, ClockField | models.AutoField)
        or isinstance(field.db_default, Now)
        or getattr(field, "auto_now", False)
        or getattr(field, "auto_now_add", False)
        or not field.editable
        or field.name.startswith(("created", "updated"))
    }


def _asked(page: ModelAdmin[Any], request: HttpRequest, row: models.Model | None) -> set[str]:
    may = page.has_add_permission(request) if row is None else page.has_change_permission(request, row)
    return set(page.get_form(request, row, change=row is not None).base_fields) if may else set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.opts.label)
def test_no_form_asks_for_a_column_that_the_service_fills_in(
    page: ModelAdmin[Any], request_of_all: HttpRequest
) -> None:
    for row in (None, page.model(pk=1)):
        assert _asked(page, request_of_all, row) & _filled_in(page) == set()


def test_the_pages_with_forms_are_found(request_of_all: HttpRequest) -> None:
    with_forms = {page.opts.label for page in PAGES if _asked(page, request_of_all, None)}
    assert {"credits.ExpiryRule", "credits.UnbackedCeiling", "sponsors.VoucherSigner"} < with_forms
