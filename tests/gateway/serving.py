"""Settings and paths of a web process that is made to be slow: what it read, a wait, and an answer in pieces."""

import json
import time
from collections.abc import Iterator

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from tests.settings import *  # noqa: F403

ROOT_URLCONF = __name__
WEB_THREADS, WEB_MAX_WAITING_REQUESTS, WEB_BODY_SECONDS = 2, 1, 1


@csrf_exempt
def echo(request: HttpRequest, rest: str = "") -> HttpResponse:
    """Answer what arrived."""
    meta = {name: value for name, value in request.META.items() if isinstance(value, str)}
    try:
        body = request.body.decode("latin-1")
    except RequestDataTooBig:
        return HttpResponse(status=413)
    return HttpResponse(json.dumps({"meta": meta, "path": request.path, "body": body}))


def wait(request: HttpRequest) -> HttpResponse:
    """Keep the thread for as long as the query says."""
    time.sleep(float(request.GET["seconds"]))
    return HttpResponse("waited")


def pieces(request: HttpRequest) -> StreamingHttpResponse:
    """Answer many pieces."""

    def parts() -> Iterator[bytes]:
        for number in range(100):
            yield b"%05d " % number * 1_000

    return StreamingHttpResponse(parts())


def fail(request: HttpRequest) -> StreamingHttpResponse:
    """Break off after the first piece."""

    def parts() -> Iterator[bytes]:
        yield b"first"
        raise RuntimeError("the second piece cannot be made")

    return StreamingHttpResponse(parts())


urlpatterns = [
    path("wait", wait),
    path("pieces", pieces),
    path("fail", fail),
    path("echo/", echo),
    path("echo/<path:rest>", echo),
]
