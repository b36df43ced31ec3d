"""The catalogue of refusals for people: what each `code` means and what to do, from the docstrings."""

import re
from dataclasses import dataclass
from http import HTTPStatus

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import re_path
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from gateway.common.errors import DomainError, all_refusals
from gateway.common.problems import for_methods
from gateway.common.schema import meaning

_CODE_SPAN = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class Entry:
    """One refusal as the pages show it."""

    code: str
    title: str
    status: int
    phrase: str
    is_retryable: bool
    paragraphs: list[SafeString]


def catalogue() -> list[Entry]:
    """Return every refusal that the routes can give, by status and code."""
    return sorted(map(_entry, all_refusals()), key=lambda entry: (entry.status, entry.code))


def _entry(refusal: type[DomainError]) -> Entry:
    paragraphs = [_marked_up(" ".join(text.split())) for text in meaning(refusal).split("\n\n")]
    phrase = HTTPStatus(refusal.status).phrase
    return Entry(refusal.code, refusal.title, refusal.status, phrase, refusal.retryable, paragraphs)


def _marked_up(text: str) -> SafeString:
    return mark_safe(_CODE_SPAN.sub(r"<code>\1</code>", escape(text)))  # noqa: S308 - escaped just before


@for_methods("GET", "HEAD")
def index(request: HttpRequest) -> HttpResponse:
    """List all codes."""
    return render(request, "problems/index.html", {"entries": catalogue()})


@for_methods("GET", "HEAD")
def detail(request: HttpRequest, code: str) -> HttpResponse:
    """Explain one code."""
    found = next((entry for entry in catalogue() if entry.code == code), None)
    if found is None:
        raise Http404
    return render(request, "problems/detail.html", {"entry": found})


urlpatterns = [
    re_path(r"^problems/?$", index),
    re_path(r"^problems/(?P<code>[a-z0-9-]+)/?$", detail),
]
