"""
The pages for people: the home page, the account holder's page, the page of sponsors' members, and the error pages that
browsers get instead of problem documents.

The two pages of a profile are shells. Scripts from our own static files load their content from the public API, so they
also serve as an example for wallets.
"""

import mimetypes
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import segno
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, re_path
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.views.decorators.gzip import gzip_page
from django.views.i18n import JavaScriptCatalog

from gateway.admin import error_pages
from gateway.chain.config import home
from gateway.common.http import PRIVATE
from gateway.common.logging import request_id
from gateway.common.problems import only_methods
from gateway.web import brand
from portal.dashboard import relayer_url

# The modules that the first screen needs to show the balance; browsers fetch them together with the page.
_FIRST_MODULES = ("dom", "page", "relay-client", "session", "text")
_CATALOGUE = "account/words/<slug:language>.<slug:version>.js"


@only_methods("GET", "HEAD")
def landing(request: HttpRequest) -> HttpResponse:
    """Return the home page."""
    return _page(request, "portal/landing.html", chain=home(), relayer_url=relayer_url())


@only_methods("GET", "HEAD")
def account(request: HttpRequest) -> HttpResponse:
    """Return the account holder's page; only the browser knows who is signed in."""
    return _shell(request, "portal/account.html", first_section="home")


@only_methods("GET", "HEAD")
def sponsor(request: HttpRequest) -> HttpResponse:
    """Return the page of sponsors' members."""
    return _shell(
        request,
        "portal/sponsor.html",
        first_section="sponsor-overview",
        self_service=settings.SPONSOR_SELF_SERVICE,
    )


def _shell(request: HttpRequest, template: str, *, first_section: str, **own: Any) -> HttpResponse:
    language = brand.language_of(request)
    version = _version_of(language)
    catalogue = f"/account/words/{language}.{version}.js" if version else ""
    modules = [f"portal/{name}.js" for name in (*_FIRST_MODULES, first_section)]
    shell = {"dev_extension": settings.DEV_EXTENSION_FILE, "modules": modules, "catalogue": catalogue}
    return _page(request, template, **shell, **own)


def _page(request: HttpRequest, template: str, **own: Any) -> HttpResponse:
    """Return a page in the reader's language; if the URL chooses a language, redirect to the URL without the choice."""
    known = {code for code, _ in brand.languages()}
    chosen = request.GET.get("language", "")
    if chosen in known:
        response: HttpResponse = redirect(request.path)
        response.set_cookie(
            settings.LANGUAGE_COOKIE_NAME,
            chosen,
            max_age=31_536_000,
            samesite="Lax",
            secure=request.is_secure(),
        )
        return response
    context = brand.context(request, **own)
    with translation.override(context["language"]):
        page = render(request, template, context)
    page["Cache-Control"] = "public, max-age=300"
    patch_vary_headers(page, ("Accept-Language", "Cookie"))
    return page


def _catalogue_file(language: str) -> Path:
    return settings.BASE_DIR / "portal" / "locale" / language / "LC_MESSAGES" / "djangojs.mo"


def _version_of(language: str) -> str:
    """Return a hash of a language's catalogue, for its URL; empty for the source's language."""
    file = _catalogue_file(language)
    return sha256(file.read_bytes()).hexdigest()[:12] if file.exists() else ""


@gzip_page
@only_methods("GET", "HEAD")
def words(request: HttpRequest, language: str, version: str) -> HttpResponse:
    """Return the catalogue of a language as a script. Its URL changes with its content, so it is cached for a year."""
    if language not in {code for code, _ in brand.languages()} or version != _version_of(language):
        raise Http404
    with translation.override(language):
        script = JavaScriptCatalog(packages=["portal"]).get(request)
    script["Cache-Control"] = "public, max-age=31536000, immutable"
    return script


@only_methods("GET", "HEAD")
def logo(request: HttpRequest) -> HttpResponse:
    """Return the operator's logo; 404 if the pages show the product's own."""
    if not settings.BRAND_LOGO_FILE:
        raise Http404
    kind = mimetypes.guess_type(settings.BRAND_LOGO_FILE)[0] or "application/octet-stream"
    day = {"Cache-Control": "public, max-age=86400"}
    return HttpResponse(Path(settings.BRAND_LOGO_FILE).read_bytes(), content_type=kind, headers=day)


@only_methods("GET", "HEAD")
def code_of_account(request: HttpRequest) -> HttpResponse:
    """Return the address of the account holder's page as a QR code, for the camera of a phone."""
    day = {"Cache-Control": "public, max-age=86400"}
    picture = BytesIO()
    # A light margin in both schemes, because cameras read dark on light.
    segno.make(f"{settings.PUBLIC_URL}/account").save(picture, kind="svg", scale=4, border=4, light="white")
    return HttpResponse(picture.getvalue(), content_type="image/svg+xml", headers=day)


@only_methods("GET", "HEAD")
def favicon(request: HttpRequest) -> HttpResponse:
    """Redirect browsers that ignore the page's icon link to the logo."""
    return redirect(brand.Brand.of_settings().logo)


@only_methods("GET", "HEAD")
def robots(request: HttpRequest) -> HttpResponse:
    """Let search engines index only the pages for people."""
    closed = (f"Disallow: {path}" for path in ("/account", "/sponsor", "/admin", "/api/"))
    return HttpResponse("\n".join(("User-agent: *", *closed, "Allow: /", "")), content_type="text/plain")


@only_methods("GET", "HEAD")
def dev_extension(request: HttpRequest) -> HttpResponse:
    """Return a development stack's replacement for the browser extension, with its test key; 404 in production."""
    if not settings.DEV_EXTENSION_FILE:
        raise Http404
    script = Path(settings.DEV_EXTENSION_FILE).read_text(encoding="utf-8")
    return HttpResponse(script, content_type="text/javascript", headers=PRIVATE)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the page for a missing permission; Django's handler403."""
    return _for_people(request, 403) or error_pages.forbidden(request, exception)


def unknown_path(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the page for an unknown path; Django's handler404."""
    return _for_people(request, 404) or error_pages.unknown_path(request, exception)


def broken(request: HttpRequest) -> HttpResponse:
    """Return the page for an unhandled exception, which Django has logged; Django's handler500."""
    return _for_people(request, 503 if error_pages.is_outage() else 500) or error_pages.broken(request)


def _for_people(request: HttpRequest, status: int) -> HttpResponse | None:
    """Return an error page for a browser outside the API and the admin; None if it should be a problem document."""
    is_page = not request.path.startswith(("/api/", "/admin", "/.well-known/"))
    if not is_page or "text/html" not in request.headers.get("Accept", ""):
        return None
    context = brand.context(request, status=status, request_id=request_id() or "")
    with translation.override(context["language"]):
        return render(request, "portal/error.html", context, status=status)


urlpatterns: list[URLPattern] = [
    path("", landing),
    re_path(r"^account/?$", account),
    re_path(r"^sponsor/?$", sponsor),
    path(_CATALOGUE, words),
    path("account/code.svg", code_of_account),
    path("account/dev-extension.js", dev_extension),
    path("logo", logo),
    path("favicon.ico", favicon),
    path("robots.txt", robots),
]
