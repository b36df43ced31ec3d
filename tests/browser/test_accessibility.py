"""
axe-core finds nothing of any level on the admin's pages, by day and by night.

`ACCESSIBILITY=full` walks the whole registry: each list, each row and each form that adds one, in both schemes, on a
desktop and on a phone. Otherwise each list and each kind of page is checked by day on a desktop, and some by night on a
phone; the sidebar, which is the same on all of them and longer than most, is looked at on the first pages alone.
"""

import os
from collections.abc import Iterator

import pytest
from django.contrib.admin import site
from django.db.models import Model
from django.test import RequestFactory
from django.urls import reverse
from playwright.sync_api import Page
from pytest_django.live_server_helper import LiveServer

from checkin.models import DropTable
from gateway.admin.models import ApprovalRequest
from relay.models import RelayTransaction
from rewards.models import Badge
from rewards.services import levels
from tests.browser.accessibility import violations
from tests.browser.admin_client import AdminClient, Person, employ
from tests.gateway.admin.sample_rows import make
from users.models import User

_IS_FULL = os.environ.get("ACCESSIBILITY") == "full"
_PAGES = ("/admin/", "/admin/books/", "/admin/search/?q=nobody", "/admin/password_change/")
_SIDEBAR = "#nav-sidebar"
# One of each kind: rows with figures, inlines, actions, a form that previews, a form with items.
_KINDS = {User, RelayTransaction, ApprovalRequest, Badge, DropTable}


@pytest.fixture
def rows(live_server: LiveServer) -> list[Model]:
    """A row of every list; transactional tests lose the badges that a migration has made."""
    for track in ("PERMANENT", "SUBSCRIBER"):
        if not Badge.objects.filter(track=track).exists():
            levels.save_badge(badge=Badge(track=track, name="Bronze", exp_lower_bound=0))
    return [make(model) for model in site._registry]


def test_everybody_can_use_every_page(admin: AdminClient, rows: list[Model]) -> None:
    person = employ()
    page = admin.open("/admin/login/")
    broken = {"login": violations(page), "login in the dark": _in_the_dark(page)}
    admin.log_in(person)
    of_kinds = [row for row in rows if _IS_FULL or type(row) in _KINDS]

    for place, path in enumerate((*_PAGES, *map(_list_of, rows), *_forms_of(of_kinds, person))):
        page.goto(f"{admin.base_url}{path}")
        # One list more than the pages, because its own entry is marked.
        is_known = not _IS_FULL and place > len(_PAGES)
        broken[path] = violations(page, left_out=[_SIDEBAR] if is_known else [])
        broken[f"{path} in the dark"] = _in_the_dark(page) if _IS_FULL else []
    page.set_viewport_size({"width": 390, "height": 844})
    on_phone = of_kinds if _IS_FULL else of_kinds[:2]
    for path in (_PAGES[0], *map(_list_of, on_phone), *_forms_of(on_phone, person)):
        page.goto(f"{admin.base_url}{path}")
        broken[f"{path} on a phone"] = violations(page) if _IS_FULL else []
        broken[f"{path} on a phone in the dark"] = _in_the_dark(page)

    assert {path: found for path, found in broken.items() if found} == {}


def _in_the_dark(page: Page) -> list[str]:
    page.evaluate("document.documentElement.classList.add('dark')")
    return violations(page)


def _list_of(row: Model) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_changelist")


def _forms_of(rows: list[Model], person: Person) -> Iterator[str]:
    """Yield the page of each row, and the form that adds one where somebody may."""
    request = RequestFactory().get("/")
    request.user = person.user
    for row in rows:
        name = f"admin:{row._meta.app_label}_{row._meta.model_name}"
        yield reverse(f"{name}_change", args=[row.pk])
        if site._registry[type(row)].has_add_permission(request):
            yield reverse(f"{name}_add")
