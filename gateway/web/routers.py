"""The router of the API's viewsets, and helpers for a GET that has an effect."""

import functools
import re
from collections.abc import Callable
from typing import Any, TypeVar, cast

from django.core.exceptions import ImproperlyConfigured
from rest_framework.request import Request
from rest_framework.routers import SimpleRouter

from gateway.common.errors import InvalidRequest

_Handler = TypeVar("_Handler", bound=Callable[..., Any])
# The methods of an action whose GET has an effect.
WITHOUT_HEAD = ["get", "post", "put", "patch", "delete", "options"]


class ApiRouter(SimpleRouter):
    """
    REST framework's router, whose paths work with and without a trailing slash.

    Register a viewset under the fixed part of its paths and name the rest in each action:

        router = ApiRouter()
        router.register("api/relay", RelayViewSet, basename="relay")

        @action(detail=False, methods=["post"], url_path="transactionStatus")

    Prefix and `url_path` are regular expressions with optional named groups. Use `@name.mapping.post` to document the
    methods of an action separately. Every GET also responds to HEAD, except an action `WITHOUT_HEAD`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.trailing_slash = "/?"

    def register(self, prefix: str, viewset: type[Any], basename: str | None = None) -> None:
        """
        Add the paths of a viewset.

        Raises:
            ImproperlyConfigured: a handler is named like a method, which all paths of the viewset would then accept.
        """
        methods = {"get", "post", "put", "patch", "delete"}
        if named := sorted(name for name in methods if hasattr(viewset, name)):
            raise ImproperlyConfigured(f"{viewset.__name__}: rename the handlers {', '.join(named)}.")
        super().register(prefix, viewset, basename)


# By these headers browsers announce a request that no person has made yet; the last two are Safari's and
# Firefox's own. The value is a structured field, such as `prefetch;prerender`.
_PURPOSES = ("Sec-Purpose", "Purpose", "X-Purpose", "X-Moz")
_AHEAD = re.compile("prefetch|prerender|preview|instant", re.IGNORECASE)


def not_prefetched(handler: _Handler) -> _Handler:
    """
    Decorate a handler of GET with an effect: refuse a browser's prefetch, which may be for a page that is never opened.

    Also pass `http_method_names=WITHOUT_HEAD` to its `action`, because HEAD would execute the GET.
    """

    @functools.wraps(handler)
    def checked(view: Any, request: Request, *args: Any, **kwargs: Any) -> Any:
        if any(_AHEAD.search(request.headers.get(name, "")) for name in _PURPOSES):
            raise InvalidRequest("This request has an effect, so it cannot be prefetched.")
        return handler(view, request, *args, **kwargs)

    return cast("_Handler", checked)
