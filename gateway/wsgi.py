"""
The entry point for any WSGI server, such as gunicorn.

The image runs `gateway.web.rsgi` instead; `docs/deployment.md` lists the differences.
"""

import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

from django.core.wsgi import get_wsgi_application

from gateway.common.logging import log_uncaught
from gateway.web import process

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gateway.settings")
log_uncaught()


class _Application:
    """Django's handler. Starts the process's threads at its first request, because a server may fork after loading."""

    def __init__(self) -> None:
        self._handler = get_wsgi_application()
        self._lock = threading.Lock()
        self._started_in = 0

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if self._started_in != os.getpid():
            self._start()
        return self._handler(environ, start_response)

    def _start(self) -> None:
        with self._lock:
            if self._started_in != os.getpid():
                process.start()
                self._started_in = os.getpid()


application = _Application()
