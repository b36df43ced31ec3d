"""The API's description for integrators: the OpenAPI document, Swagger UI and ReDoc from our own static files."""

from typing import Any

from django.urls import URLPattern, re_path
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularRedocView, SpectacularSwaggerSplitView
from rest_framework.permissions import AllowAny
from rest_framework.renderers import TemplateHTMLRenderer

_PUBLIC = {"authentication_classes": (), "permission_classes": (AllowAny,)}
_PAGE = {**_PUBLIC, "renderer_classes": (TemplateHTMLRenderer,)}

urlpatterns: list[URLPattern] = [
    re_path(r"^api/openapi\.json$", SpectacularJSONAPIView.as_view(**_PUBLIC), name="schema"),
    re_path(r"^api/docs/?$", SpectacularSwaggerSplitView.as_view(url_name="schema", **_PAGE)),
    re_path(r"^api/docs/redoc/?$", SpectacularRedocView.as_view(url_name="schema", **_PAGE)),
]


def paths_as_documented(endpoints: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Show each path without the trailing slash that it also works with; drf-spectacular calls this."""
    return [(path.rstrip("/") or "/", *others) for path, *others in endpoints]
