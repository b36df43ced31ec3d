"""
The pages for people: what this service is, and the page of the account holder.

The account holder's page is a shell. Everything in it comes from the public API by scripts from our own static
files, so it is also the living example of what a wallet can do.
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
    """Answer what this service is, for whom, and where to go."""
    context = {"chain": get_chain(), "relayer_url": relayer_url()}
    return _cached(render(request, "portal/landing.html", context))


@only_methods("GET", "HEAD")
def account(request: HttpRequest) -> HttpResponse:
    """Answer the account holder's page; who is signed in only the browser knows."""
    return _cached(render(request, "portal/account.html", {"dev_extension": settings.DEV_EXTENSION_FILE}))


@only_methods("GET", "HEAD")
def dev_extension(request: HttpRequest) -> HttpResponse:
    """Answer the dev stack's stand-in for the browser extension, with its test key; anywhere else there is none."""
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
