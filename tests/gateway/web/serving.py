"""Settings and paths of a web process that is made to be slow: what it read, waits, and a response in pieces."""

import json
import os
import time
from collections.abc import Iterator, Set
from itertools import count
from pathlib import Path

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from gateway.web.waiting import Wait
from tests.settings import *  # noqa: F403

ROOT_URLCONF = __name__
WEB_THREADS, WEB_MAX_WAITING_REQUESTS, WEB_BODY_SECONDS = 2, 3, 1
# As in service, where the tests' own settings leave it to pytest.
LOGGING["root"] = {"handlers": ["console"], "level": "INFO"}  # noqa: F405
WEB_MAX_REQUESTS = 40
WEB_STALLED_SECONDS = float(os.environ.get("WEB_STALLED_SECONDS", "60"))
WEB_MAX_LONG_POLLS, WEB_MAX_LONG_POLLS_PER_USER = 5, 4


@csrf_exempt
def echo(request: HttpRequest, rest: str = "") -> HttpResponse:
    """Return what arrived."""
    meta = {name: value for name, value in request.META.items() if isinstance(value, str)}
    try:
        body = request.body.decode("latin-1")
    except RequestDataTooBig:
        return HttpResponse(status=413)
    return HttpResponse(json.dumps({"meta": meta, "path": request.path, "body": body}))


def wait(request: HttpRequest) -> HttpResponse:
    """Keep the thread for the seconds that the query gives."""
    time.sleep(float(request.GET["seconds"]))
    return HttpResponse("waited")


def hold(request: HttpRequest) -> HttpResponse:
    """Keep the thread until there is a file."""
    while not Path(os.environ["POLLED_FILE"] + ".go").exists():
        time.sleep(0.01)
    return HttpResponse("waited")


def pieces(request: HttpRequest) -> StreamingHttpResponse:
    """Return many pieces."""

    def parts() -> Iterator[bytes]:
        for number in range(100):
            yield b"%05d " % number * 1_000

    return StreamingHttpResponse(parts())


def endless(request: HttpRequest) -> StreamingHttpResponse:
    """Return more than any client reads."""
    return StreamingHttpResponse(b"%05d " % 0 * 10_000 for _ in count())


def fail(request: HttpRequest) -> StreamingHttpResponse:
    """Break off after the first piece."""

    def parts() -> Iterator[bytes]:
        yield b"first"
        raise RuntimeError("the second piece cannot be made")

    return StreamingHttpResponse(parts())


def poll(request: HttpRequest) -> HttpResponse:
    """Return what the file named by POLLED_FILE holds, and wait for it to hold something else."""
    response = HttpResponse(_held(), content_type="application/json")
    wait = Wait(int(request.GET["user"]), float(request.GET["seconds"]), _held(), _changes)
    response.wait = wait  # type: ignore[attr-defined]
    return response


def broken(request: HttpRequest) -> HttpResponse:
    """Return what the event loop cannot deal with, once the thread is done."""
    response = HttpResponse()
    response.wait = "no wait"  # type: ignore[attr-defined]
    return response


def _held() -> str:
    return Path(os.environ["POLLED_FILE"]).read_text()


def _changes(shown: Set[str]) -> dict[str, bytes]:
    with Path(os.environ["POLLED_FILE"] + ".checks").open("a") as checks:
        checks.write(f"{len(shown)}\n")
    return {one: _held().encode() for one in shown if one != _held()}


urlpatterns = [
    path("poll", poll),
    path("broken", broken),
    path("wait", wait),
    path("hold", hold),
    path("pieces", pieces),
    path("endless", endless),
    path("fail", fail),
    path("echo/", echo),
    path("echo/<path:rest>", echo),
]
