"""The API's description for integrators: the OpenAPI document, Swagger UI and ReDoc from our own static files."""

import functools
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, re_path
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.views import SpectacularRedocView, SpectacularSwaggerSplitView
from rest_framework.permissions import AllowAny
from rest_framework.renderers import TemplateHTMLRenderer

_PUBLIC = {"authentication_classes": (), "permission_classes": (AllowAny,)}
_FILE = {
    "Content-Disposition": 'inline; filename="openapi.json"',
    "Cache-Control": "public, max-age=300",
}
_WITH_RETRY_AFTER = {"429", "503"}
_RETRY_AFTER = {
    "description": "Seconds to wait before the next attempt.",
    "schema": {"type": "integer", "minimum": 1},
}
_PAGE = {**_PUBLIC, "renderer_classes": (TemplateHTMLRenderer,)}


def description(request: HttpRequest) -> HttpResponse:
    """Answer the OpenAPI document. It is the same for everybody and expensive, so a process makes it once."""
    return HttpResponse(_document(), content_type=OpenApiJsonRenderer.media_type, headers=_FILE)


@functools.cache
def _document() -> bytes:
    generator: Any = SchemaGenerator
    schema = generator().get_schema(request=None, public=True)
    return bytes(OpenApiJsonRenderer().render(schema, renderer_context={}))


urlpatterns: list[URLPattern] = [
    re_path(r"^api/openapi\.json$", description, name="schema"),
    re_path(r"^api/docs/?$", SpectacularSwaggerSplitView.as_view(url_name="schema", **_PAGE)),
    re_path(r"^api/docs/redoc/?$", SpectacularRedocView.as_view(url_name="schema", **_PAGE)),
]


def paths_as_documented(endpoints: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Show each path without the trailing slash that it also works with; drf-spectacular calls this."""
    return [(path.rstrip("/") or "/", *others) for path, *others in endpoints]


def waits_as_documented(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Show the header Retry-After of every 429 and 503; drf-spectacular calls this."""
    for operations in result["paths"].values():
        for operation in operations.values():
            for status in _WITH_RETRY_AFTER & set(operation["responses"]):
                operation["responses"][status]["headers"] = {"Retry-After": _RETRY_AFTER}
    return result
