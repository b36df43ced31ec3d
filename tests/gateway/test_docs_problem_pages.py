"""Every code has a page that tells people what it means, made from the refusal itself."""

import re
from collections import Counter

import pytest
from django.test import Client

from gateway import urls
from gateway.common.errors import DomainError, all_errors
from gateway.docs import catalogue

assert urls.urlpatterns, "the routes import every error that they can return"
_REFUSALS = sorted(
    (error for error in all_errors() if not error.__module__.startswith("tests.")),
    key=lambda error: error.code,
)


def _described(refusal: type[DomainError]) -> str:
    return " ".join((refusal.__doc__ or "").split())


def test_no_two_refusals_share_a_code() -> None:
    assert [code for code, count in Counter(refusal.code for refusal in _REFUSALS).items() if count > 1] == []


def test_every_refusal_is_named_and_explained() -> None:
    for refusal in _REFUSALS:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", refusal.code), refusal
        assert refusal.title, refusal
        assert not refusal.title.endswith("."), refusal
        assert 400 <= refusal.status <= 599, refusal
        # A class without a docstring would show its parent's.
        assert "__doc__" in refusal.__dict__, refusal
        assert len(_described(refusal)) > 20, refusal
        assert refusal.retryable == (refusal.status in {429, 500, 503}), refusal


def test_the_index_lists_every_code_once() -> None:
    page = Client().get("/problems").content.decode()

    assert re.findall(r'href="/problems/([a-z0-9-]+)"', page) == [entry.code for entry in catalogue()]
    assert {entry.code for entry in catalogue()} >= {error.code for error in _REFUSALS}


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_page_shows_status_meaning_and_whether_a_repeat_helps(slash: str) -> None:
    page = Client().get(f"/problems/access-token-expired{slash}").content.decode()

    assert "401 Unauthorized" in page
    assert "Exchange the refresh token at <code>/api/auth/refresh</code>." in page
    assert "The same request fails again" in page
    assert "may succeed later" in Client().get("/problems/chain-unavailable").content.decode()


def test_a_docstring_is_rendered_as_text_and_not_as_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    class Provocation(DomainError):
        """Send `<b>` & nothing else."""

        code, title, status = "", "A <i>provocation</i>", 400

    # Without a code again after the test, the class is in no catalogue.
    monkeypatch.setattr(Provocation, "code", "provocation")
    page = Client().get("/problems/provocation").content.decode()

    assert "Send <code>&lt;b&gt;</code> &amp; nothing else." in page
    assert "<i>" not in page


def test_an_unknown_code_has_no_page() -> None:
    assert Client().get("/problems/no-such-code").status_code == 404


@pytest.mark.parametrize("path", ["/problems", "/problems/not-found"])
def test_pages_are_only_read(path: str) -> None:
    refused = Client().post(path)
    assert (refused.status_code, refused.headers["Allow"]) == (405, "GET, HEAD")
    assert refused.json()["code"] == "method-not-allowed"
    assert Client().head(path).status_code == 200
