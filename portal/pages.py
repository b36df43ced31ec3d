"""
The pages for people: what this service is, and the page of the account holder.

The account holder's page is a shell. Everything in it comes from the public API by scripts from our own static
files, so it is also the living example of what a wallet can do.
"""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path, re_path

from gateway.chain.config import get_chain
from gateway.common.problems import only_methods


@only_methods("GET", "HEAD")
def landing(request: HttpRequest) -> HttpResponse:
    """Answer what this service is, for whom, and where to go."""
    context = {"chain": get_chain(), "relayer_url": f"{settings.PUBLIC_URL}/api/lsp15"}
    return _cached(render(request, "portal/landing.html", context))


@only_methods("GET", "HEAD")
def account(request: HttpRequest) -> HttpResponse:
    """Answer the account holder's page; who is signed in only the browser knows."""
    return _cached(render(request, "portal/account.html"))


def _cached(page: HttpResponse) -> HttpResponse:
    page["Cache-Control"] = "public, max-age=300"
    return page


urlpatterns: list[URLPattern] = [
    path("", landing),
    re_path(r"^account/?$", account),
]
