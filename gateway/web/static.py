"""
How static files are stored in the image: named by their content, compressed, and kept by browsers for a year.

A bare checkout serves them from the packages' folders, and compresses them on the way.
"""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from whitenoise.storage import CompressedManifestStaticFilesStorage


class HashedFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """Also rewrites the imports of JavaScript modules, so that a module is fetched by the name of its content."""

    support_js_module_import_aggregation = True
    # Only ours are modules; the bundles of packages import nothing.
    _OURS = "portal/"

    def url_converter(self, name: str, *args: Any, **options: Any) -> Any:
        convert = super().url_converter(name, *args, **options)
        if not name.endswith(".js") or name.startswith(self._OURS):
            return convert
        return lambda match: match.group()


def compressed(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware: compress static files, which are no secret that compression could reveal."""
    compress = GZipMiddleware(get_response)

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        is_static = request.path.startswith(settings.STATIC_URL)
        return compress.process_response(request, response) if is_static else response

    return middleware
