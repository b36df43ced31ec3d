"""
The pages for people: the home page, and the account holder's page.

The account holder's page is a shell. Scripts from our own static files load its content from the public API, so it also
serves as an example for wallets.
"""

from pathlib import Path

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path, re_path

from gateway.chain.config import get_chain
from gateway.common.http import PRIVATE
from gateway.common.problems import only_methods
from portal.dashboard import relayer_url


@only_methods("GET", "HEAD")
def landing(request: HttpRequest) -> HttpResponse:
    """Return the home page."""
    context = {"chain": get_chain(), "relayer_url": relayer_url()}
    return _cached(render(request, "portal/landing.html", context))


@only_methods("GET", "HEAD")
def account(request: HttpRequest) -> HttpResponse:
    """Return the account holder's page; only the browser knows who is signed in."""
    return _cached(render(request, "portal/account.html", {"dev_extension": settings.DEV_EXTENSION_FILE}))


@only_methods("GET", "HEAD")
def dev_extension(request: HttpRequest) -> HttpResponse:
    """Return the dev stack's replacement for the browser extension, with its test key; 404 elsewhere."""
    if not settings.DEV_EXTENSION_FILE:
        raise Http404
    script = Path(settings.DEV_EXTENSION_FILE).read_text(encoding="utf-8")
    return HttpResponse(script, content_type="text/javascript", headers=PRIVATE)


def _cached(page: HttpResponse) -> HttpResponse:
    page["Cache-Control"] = "public, max-age=300"
    return page


urlpatterns: list[URLPattern] = [
    path("", landing),
    re_path(r"^account/?$", account),
    path("account/dev-extension.js", dev_extension),
]
