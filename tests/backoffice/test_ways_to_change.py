"""
Every way to change something, by a page of the admin or a command, is listed in `ways.py` with what it takes.

A new way fails here until its author has decided whether it takes a second person.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.core.management import CommandError, call_command, get_commands, load_command_class
from django.http import HttpRequest
from django.test import RequestFactory

from gateway.admin.actions import ReasonedActions
from gateway.admin.approval_forms import ApprovedForm
from gateway.staff import approval_kinds
from tests.backoffice.ways import WAYS
from tests.staff import member
from users.management.approval_command import ApprovalCommand
from users.models import User

pytestmark = pytest.mark.django_db
# Django's that make staff, besides those of our apps.
_OTHERS = {"createsuperuser", "changepassword"}
_READ_ONLY_ACTIONS = {"export_csv", "export_xlsx"}
_USUAL = {"changelist", "add", "change", "delete", "history", "do", "export"}


def listed() -> dict[tuple[str, str], str]:
    """Return what each way of each page or command takes: the kind of a request, or why no second person."""
    return {(name, way): takes for name, takes, *ways in WAYS for way in ways or [""]}


def _is_model(name: str) -> bool:
    return name[0].isupper()


def of_the_admin() -> Iterator[tuple[str, str, str]]:
    request = RequestFactory().get("/admin/")
    request.user = member("superuser")
    for model, page in admin.site._registry.items():
        for way, kind in (*_forms(page, request), *_actions(page, request)):
            yield model.__name__, way, kind


def pages_of_their_own() -> set[tuple[str, str]]:
    """Return what the admin has besides Django's pages, confirmations and exports: each declares what it takes."""
    names = {
        (model.__name__, str(url.name).rpartition("_")[2])
        for model, page in admin.site._registry.items()
        for url in page.get_urls()
        if url.name
    }
    return {(model, name) for model, name in names if name not in _USUAL}


def _forms(page: Any, request: HttpRequest) -> Iterator[tuple[str, str]]:
    rows = _examples(page.model, request.user)
    approved = page.saves.name if isinstance(page, ApprovedForm) else ""
    if page.has_add_permission(request):
        yield _named("add", approved, page, request, None)
    if any(page.has_change_permission(request, row) for row in rows):
        yield _named("change", approved, page, request, rows[-1])
    if approved and type(page).takes_approval is not ApprovedForm.takes_approval:
        yield "change of wallet users: is_active", ""
    if any(page.has_delete_permission(request, row) for row in rows):
        yield "delete", ""
    for inline in page.get_inline_instances(request, rows[-1]):
        asked = (inline.has_add_permission, inline.has_change_permission, inline.has_delete_permission)
        if any(may(request, rows[-1]) for may in asked):
            yield f"{inline.model.__name__}: {', '.join(inline.fields)}", ""


def _examples(model: Any, user: Any) -> list[Any]:
    authored = {"author": user} if "author" in {field.name for field in model._meta.fields} else {}
    return [None, model(**authored)]


def _named(verb: str, approved: str, page: Any, request: HttpRequest, row: Any) -> tuple[str, str]:
    fields = [] if approved else sorted(page.get_form(request, row).base_fields)
    return f"{verb}: {', '.join(fields)}" if fields else verb, approved


def _actions(page: Any, request: HttpRequest) -> Iterator[tuple[str, str]]:
    reasoned = page.staff_actions if isinstance(page, ReasonedActions) else ()
    for action in reasoned:
        yield action.name, action.kind.name if action.kind else ""
    plain = page.get_actions(request).keys() - {action.name for action in reasoned}
    yield from ((name, "") for name in sorted(plain - _READ_ONLY_ACTIONS))


def commands() -> dict[str, str]:
    """Return our commands by name, each with the package that has it; those that replace Django's among them."""
    ours = {config.name for config in apps.get_app_configs() if "site-packages" not in config.path}
    return {name: app for name, app in get_commands().items() if app in ours}


def test_every_page_declares_the_rule_for_each_of_its_ways_to_change() -> None:
    derived = {(name, way): kind for name, way, kind in of_the_admin()}
    written = {key: takes for key, takes in listed().items() if _is_model(key[0])}
    own = pages_of_their_own()
    assert own <= written.keys()
    kinds = {kind.name for kind in approval_kinds.kinds()}
    assert {
        key: takes if takes in kinds else "" for key, takes in written.items() if key not in own
    } == derived
    assert all(written.values())


def test_every_command_declares_its_rule() -> None:
    written = {name: takes for (name, _), takes in listed().items() if not _is_model(name)}
    assert written.keys() == commands().keys()
    assert written.keys() >= _OTHERS
    kinds = {kind.name for kind in approval_kinds.kinds()}
    with_approval = {
        name for name, app in commands().items() if isinstance(load_command_class(app, name), ApprovalCommand)
    }
    assert {name for name, takes in written.items() if takes in kinds} == with_approval
    assert all(written.values())


def test_every_kind_of_request_has_a_page_that_creates_it() -> None:
    assert {kind.name for kind in approval_kinds.kinds()} <= set(listed().values())


@pytest.mark.parametrize("name", sorted(_OTHERS))
def test_commands_that_create_staff_directly_are_refused(name: str) -> None:
    before = User.objects.count()
    with pytest.raises(CommandError, match="admin"):
        call_command(name)
    assert User.objects.count() == before
