"""
Storage of static files in the image: named by their content and compressed; browsers cache them for a year.

A bare checkout serves the files from the packages' folders, and compresses each response.
"""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from whitenoise.storage import CompressedManifestStaticFilesStorage


class HashedFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """Also rewrites the imports of JavaScript modules to the hashed names."""

    support_js_module_import_aggregation = True
    # Only our own files are modules; the bundles of packages import nothing.
    _OURS = "portal/"

    def url_converter(self, name: str, *args: Any, **options: Any) -> Any:
        convert = super().url_converter(name, *args, **options)
        if not name.endswith(".js") or name.startswith(self._OURS):
            return convert
        return lambda match: match.group()


def compressed(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware: compress static files. They contain no secrets, so the BREACH attack does not apply."""
    compress = GZipMiddleware(get_response)

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        is_static = request.path.startswith(settings.STATIC_URL)
        return compress.process_response(request, response) if is_static else response

    return middleware
