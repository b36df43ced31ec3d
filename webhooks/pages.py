"""
The pages behind the links in e-mails: confirm the address, or end the notices.

Mail servers open links by themselves, so only the button on the page, or that of a mail program, changes anything.
The token in the URL is the authorisation, so no cookies are needed.
"""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path
from django.utils import translation
from django.views.decorators.csrf import csrf_exempt

from gateway.common import clock
from gateway.common.http import PRIVATE
from gateway.common.problems import only_methods
from gateway.web import brand
from webhooks.services import addresses


@csrf_exempt
@only_methods("GET", "HEAD", "POST")
def confirm(request: HttpRequest, token: str) -> HttpResponse:
    """Ask for a click, and confirm the address."""
    if request.method != "POST":
        return _page(request, "ask-confirm")
    return _page(request, "confirmed" if addresses.confirm(token, now=clock.now()) else "invalid")


@csrf_exempt
@only_methods("GET", "HEAD", "POST")
def stop(request: HttpRequest, token: str) -> HttpResponse:
    """Ask for a click, and delete the address."""
    if request.method != "POST":
        return _page(request, "ask-stop")
    addresses.stop(token)
    return _page(request, "stopped")


def _page(request: HttpRequest, step: str) -> HttpResponse:
    context = brand.context(request, step=step)
    with translation.override(context["language"]):
        page = render(request, "portal/notices.html", context, status=404 if step == "invalid" else 200)
    for name, value in {**PRIVATE, "Referrer-Policy": "no-referrer"}.items():
        page[name] = value
    return page


urlpatterns: list[URLPattern] = [
    path("notices/confirm/<str:token>", confirm),
    path("notices/stop/<str:token>", stop),
]
