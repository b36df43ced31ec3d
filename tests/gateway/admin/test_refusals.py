"""Staff are refused in words, on a page of the admin; callers of the API get problem documents as ever."""

import secrets
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.contrib import admin
from django.test import Client
from django.utils.module_loading import import_string

from gateway import urls
from relay.models import Relayer
from tests.factories import UserFactory
from tests.staff import browser_of, log_in_staff, member

pytestmark = pytest.mark.django_db


def assert_page(answer: Any, status: int, *words: str) -> None:
    """A page of a kind, which names its request and leads back."""
    text = answer.content.decode()
    assert (answer.status_code, answer["Content-Type"]) == (status, "text/html; charset=utf-8")
    assert all(word in text for word in (*words, 'href="/admin/"', answer["X-Request-ID"]))


def test_a_page_without_permission_names_the_missing_role() -> None:
    browser = browser_of(member("support"))
    assert_page(browser.get("/admin/auth/group/"), 403, "Your roles do not allow this")
    assert_page(browser.get("/admin/users/trustedimplementation/add/"), 403, "Your roles do not allow this")
    assert_page(browser.post("/admin/books/", {"comparison": "ledger"}), 403, "Your roles do not allow this")


@pytest.mark.parametrize(
    "address", ["/admin/nothing/here", "/admin/credits/nothing/", "/admin/relay/relayer/do/x/"]
)
def test_a_missing_page_is_explained_in_words(client: Client, address: str) -> None:
    log_in_staff(client)
    assert_page(client.get(address), 404, "Page not found")


def test_an_internal_error_shows_its_request_id(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    log_in_staff(client)

    def broken(*_: Any) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr(type(admin.site._registry[Relayer]), "get_queryset", broken)
    client.raise_request_exception = False
    response = client.get("/admin/relay/relayer/")
    assert_page(response, 500, "Internal error", "check the row")
    assert "a secret" not in response.content.decode()


def test_a_form_that_is_too_old_was_not_done() -> None:
    browser = Client(enforce_csrf_checks=True)
    assert_page(
        browser.post("/admin/login/", {"username": "x"}), 403, "This form has expired", "Nothing was done"
    )


@pytest.mark.parametrize("prefix", ["/api", "/administration"])
def test_outside_the_admin_no_html_is_returned(prefix: str) -> None:
    response = Client().get(f"{prefix}/nothing")
    assert (response.status_code, response["Content-Type"]) == (404, "application/problem+json")


@pytest.mark.parametrize(
    ("handler", "status"),
    [(urls.handler403, 403), (urls.handler404, 404), (urls.handler500, 500)],
)
def test_the_handlers_return_problem_documents_to_api_callers(
    rf: Any, handler: str, status: int, settings: Any
) -> None:
    respond: Callable[..., Any] = import_string(handler)
    arguments = () if status == 500 else (Exception(),)
    response = respond(rf.get("/api/x"), *arguments)
    assert (response.status_code, response["Content-Type"]) == (status, "application/problem+json")
    failed: Callable[..., Any] = import_string(settings.CSRF_FAILURE_VIEW)
    assert failed(rf.post("/api/x"))["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("role", ["support", "superuser"])
def test_forms_neither_show_a_password_hash_nor_set_a_password(role: str) -> None:
    colleague = UserFactory.create(profile_address=None, is_staff=True)
    colleague.set_password("x" * 12)
    colleague.save()
    page, browser = f"/admin/users/user/{colleague.pk}/", browser_of(member(role))
    shown = browser.get(f"{page}change/").content.decode()
    assert colleague.username in shown
    assert "iterations" not in shown
    assert "algorithm" not in shown
    assert f"{colleague.pk}/password/" not in shown
    # Django's page for it is not there; its address leads to nothing that takes one.
    browser.post(f"{page}password/", {"password1": "y" * 12, "password2": "y" * 12})
    colleague.refresh_from_db()
    assert colleague.check_password("x" * 12)


def test_the_lockout_page_shows_its_duration() -> None:
    person, browser = member("support"), Client()
    tries = [
        browser.post("/admin/login/", {"username": person.username, "password": secrets.token_hex(8)})
        for _ in range(settings.AXES_FAILURE_LIMIT)
    ]
    assert_page(tries[-1], 429, "Too many failed logins", "for 15 minutes")
    assert tries[-1]["Retry-After"] == "900"
    assert person.username not in tries[-1].content.decode()
