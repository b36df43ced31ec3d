"""
axe-core finds nothing of any level on the admin's pages, by day and by night.

`ACCESSIBILITY=full` walks the whole registry: each list, each row, each form that adds one, and the page that confirms
each action, in both schemes, on a desktop and on a phone. Otherwise each list and each kind of page is checked by day
on a desktop, and some by night on a phone. The sidebar, which is the same on all of them and longer than most, is whole
on the first pages alone. Lists share their scripts and styles: the body of each is put into the window that shows the
first.
"""

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pytest
from django.contrib.admin import site
from django.db.models import Model
from django.http import HttpRequest
from django.test import RequestFactory
from django.urls import reverse
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from checkin.models import DropTable
from gateway.admin.actions import ReasonedActions
from gateway.staff.models import ApprovalRequest, Pause
from relay.models import RelayTransaction
from rewards.models import Badge
from rewards.services import levels
from tests.browser.accessibility import violations
from tests.browser.admin_client import AdminClient, Person, employ
from tests.factories import make
from tests.staff import short_sidebar
from users.models import Phone, User

_IS_FULL = os.environ.get("ACCESSIBILITY") == "full"
_PAGES = (
    "/admin/",
    "/admin/lists/",
    "/admin/books/",
    "/admin/search/?q=nobody",
    "/admin/password_change/",
    "/admin/password_change/done/",
    "/admin/second-factor/",
)
# One of each kind: rows with figures, inlines, actions, a form that previews, a form with items.
_KINDS = {User, RelayTransaction, ApprovalRequest, Badge, DropTable}
# Of these the page that confirms their first action: of a row, of a thing as a whole, of rows that Django deletes.
_CONFIRMED = {ApprovalRequest, Pause, Phone}
_SIDEBAR = "#nav-sidebar"
# Shows another list without loading scripts and styles again.
_PUT = """async path => {
  const answer = await fetch(path), next = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.documentElement.classList.remove("dark");
  document.title = next.title;
  document.body.replaceWith(document.adoptNode(next.body));
}"""
# Sends a list as a click on "Run" does, with its first row chosen.
_CHOOSE = """action => {
  document.querySelector("input[name=_selected_action]").checked = true;
  document.querySelector("select[name=action]").value = action;
  HTMLFormElement.prototype.submit.call(document.querySelector("#changelist-form"));
}"""


class Stop(NamedTuple):
    """A path, and the action that is chosen there for the first row of a list; most stops are a page alone."""

    path: str
    action: str = ""


@pytest.fixture
def rows(live_server: LiveServer) -> list[Model]:
    """A row of every list; transactional tests lose the badges that a migration has made."""
    for track in ("PERMANENT", "SUBSCRIBER"):
        if not Badge.objects.filter(track=track).exists():
            levels.save_badge(badge=Badge(track=track, name="Bronze", exp_lower_bound=0))
    return [make(model) for model in site._registry]


def test_every_page_is_accessible(admin: AdminClient, rows: list[Model]) -> None:
    person = employ()
    page = admin.open("/admin/login/")
    broken = {"login": violations(page), "login in the dark": _in_the_dark(page)}
    admin.log_in(person)
    of_kinds = [row for row in rows if _IS_FULL or type(row) in _KINDS]
    confirmed = list(_confirmations(rows, person))
    pages, lists = list(map(Stop, _PAGES)), [Stop(_list_of(row)) for row in rows]

    # One list more than the pages, because its own entry in the sidebar is marked.
    for stop in (*pages, lists[0]):
        _go(page, admin, stop)
        broken |= _found(page, stop)
    with short_sidebar():
        for stop in lists[1:]:
            page.evaluate(_PUT, stop.path)
            expect(page.locator("#changelist")).to_be_visible()
            broken |= _found(page, stop, left_out=[_SIDEBAR])
        for stop in (*_forms_of(of_kinds, person), *confirmed):
            _go(page, admin, stop)
            broken |= _found(page, stop, left_out=[_SIDEBAR])
    page.set_viewport_size({"width": 390, "height": 844})
    on_phone = of_kinds if _IS_FULL else of_kinds[:2]
    others = (*pages[1:], *confirmed) if _IS_FULL else confirmed[:1]
    for stop in (pages[0], *(Stop(_list_of(row)) for row in on_phone), *_forms_of(on_phone, person), *others):
        _go(page, admin, stop)
        broken[f"{stop} on a phone"] = violations(page) if _IS_FULL else []
        broken[f"{stop} on a phone in the dark"] = _in_the_dark(page)
    with page.expect_navigation():
        page.evaluate("document.querySelector('form[action$=\"/logout/\"]').submit()")
    broken["logged out"] = violations(page)
    broken["logged out in the dark"] = _in_the_dark(page)

    assert {path: problems for path, problems in broken.items() if problems} == {}


def _found(page: Page, stop: Stop, *, left_out: Sequence[str] = ()) -> dict[str, list[str]]:
    by_day = violations(page, left_out=left_out)
    return {f"{stop}": by_day, f"{stop} in the dark": _in_the_dark(page, left_out) if _IS_FULL else []}


def _in_the_dark(page: Page, left_out: Sequence[str] = ()) -> list[str]:
    page.evaluate("document.documentElement.classList.add('dark')")
    return violations(page, left_out=left_out)


def _list_of(row: Model) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_changelist")


def _go(page: Page, admin: AdminClient, stop: Stop) -> None:
    page.goto(f"{admin.base_url}{stop.path}")
    if stop.action:
        with page.expect_navigation():
            page.evaluate(_CHOOSE, stop.action)
        assert page.locator("form[method=post] [type=submit], main a[href]").count(), stop


def _request_of(person: Person) -> HttpRequest:
    request = RequestFactory().get("/")
    request.user = person.user
    return request


def _forms_of(rows: list[Model], person: Person) -> Iterator[Stop]:
    """Yield the page of each row, and the form that adds one where that is allowed."""
    for row in rows:
        name = f"admin:{row._meta.app_label}_{row._meta.model_name}"
        yield Stop(reverse(f"{name}_change", args=[row.pk]))
        if site._registry[type(row)].has_add_permission(_request_of(person)):
            yield Stop(reverse(f"{name}_add"))


def _confirmations(rows: list[Model], person: Person) -> Iterator[Stop]:
    """Yield the page that confirms each action: of chosen rows, and of a thing as a whole."""
    for row in rows:
        page = site._registry[type(row)]
        stops = [Stop(_list_of(row), action) for action in page.get_actions(_request_of(person))]
        if isinstance(page, ReasonedActions):
            stops += [Stop(page.confirm_url(action, [])) for action in page.staff_actions if action.subject]
        yield from stops if _IS_FULL else stops[:1] if type(row) in _CONFIRMED else []
