"""The supervisor: one for all, all for one, and nothing is left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import urllib3

from devstack.ports import free_port, require_free_port
from devstack.processes import Web

_PATIENCE_SECONDS = 120
# A script that runs writes a file; the folder is the first argument of every script.
_COMMON = """
import os, signal, subprocess, sys, time
from pathlib import Path
folder = Path(sys.argv[1])
def ready():
    (folder / f"{os.getpid()}.ready").touch()
def wait_for_go():
    while not (folder / "go").exists():
        time.sleep(0.02)
"""
_SUPERVISOR = """
from devstack.process_lifetime import run_guarded
from devstack.processes import GatewayProcess
from devstack.services.server import ServerFailed, stop_all
from devstack.supervisor import supervise

class Scripted(GatewayProcess):
    def __init__(self, name, script):
        self.name = name
        self.script = script
        super().__init__(folder, dict(os.environ))
    def command(self):
        return [sys.executable, str(folder / self.script), str(folder)]
    def answers(self):
        return True

def job():
    ready()
    {job}

def work():
    processes = [Scripted("one", {one!r}), Scripted("two", {two!r})]
    try:
        for process in processes:
            process.start()
        return supervise(processes, job)
    except ServerFailed as error:
        print(error)
        return 1
    finally:
        stop_all(processes)
sys.exit(run_guarded(work))
"""
_BUSY = """
import asyncio
import time
async def application(scope, protocol):
    if scope.path == "/busy":
        print("busy", flush=True)
        await asyncio.to_thread(time.sleep, 999)
    protocol.response_bytes(200, [], b"")
"""
_SCRIPTS = {
    "wait": "ready(); time.sleep(999)",
    "crash": "ready(); wait_for_go(); sys.exit('the disk is full')",
    # It leaves a child that ignores SIGTERM, as a busy web server's process does.
    "parent": "subprocess.Popen([sys.executable, str(folder / 'stubborn'), str(folder)]); time.sleep(999)",
    "stubborn": "signal.signal(15, signal.SIG_IGN); ready(); time.sleep(999)",
}


class BusyWeb(Web):
    """The web server with an application that never ends a request."""

    def command(self) -> list[str]:
        """Return the same server."""
        return [*super().command()[:-1], "busy:application"]


@contextmanager
def supervised(folder: Path, one: str, two: str, job: str = "return None") -> Iterator[subprocess.Popen[str]]:
    """Yield a process that runs two others and has begun its job; whatever happens, it is gone afterwards."""
    for name, script in _SCRIPTS.items():
        (folder / name).write_text(_COMMON + script)
    script = _COMMON + _SUPERVISOR.format(one=one, two=two, job=job)
    command = [sys.executable, "-c", script, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            deadline = time.monotonic() + _PATIENCE_SECONDS
            while len(list(folder.glob("*.ready"))) < 3:
                assert time.monotonic() < deadline, "the processes did not start"
                time.sleep(0.02)
            yield process
        finally:
            process.kill()


def descendants(process: subprocess.Popen[str], number: int) -> list[psutil.Process]:
    """Return all processes below this one, in the expected number; the supervisor comes first."""
    processes = psutil.Process(process.pid).children(recursive=True)
    assert len(processes) == number
    return processes


def assert_gone(processes: list[psutil.Process]) -> None:
    """They end, all of them."""
    assert psutil.wait_procs(processes, timeout=_PATIENCE_SECONDS)[1] == []


def test_the_result_of_the_job_ends_every_process(tmp_path: Path) -> None:
    with supervised(tmp_path, "wait", "parent", "wait_for_go(); return 7") as process:
        below = descendants(process, 4)
        (tmp_path / "go").touch()
        assert process.wait(_PATIENCE_SECONDS) == 7
    assert_gone(below)


def test_a_process_that_ends_takes_the_others_along_and_its_last_words_are_shown(tmp_path: Path) -> None:
    with supervised(tmp_path, "crash", "parent") as process:
        below = descendants(process, 4)
        (tmp_path / "go").touch()
        output = process.communicate(timeout=_PATIENCE_SECONDS)[0]
    assert process.returncode == 1
    assert "one ended by itself" in output
    assert "the disk is full" in output
    assert_gone(below)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_a_signal_ends_every_process_without_a_word(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    with supervised(tmp_path, "wait", "parent") as process:
        below = descendants(process, 4)
        os.kill(process.pid, number)
        assert process.communicate(timeout=_PATIENCE_SECONDS)[0] == ""
    assert process.returncode == status
    assert_gone(below)


@pytest.mark.parametrize("is_supervisor", [True, False])
def test_when_the_supervisor_or_its_guard_is_killed_every_process_ends(
    tmp_path: Path, *, is_supervisor: bool
) -> None:
    with supervised(tmp_path, "wait", "parent") as process:
        below = descendants(process, 4)
        os.kill(below[0].pid if is_supervisor else process.pid, signal.SIGKILL)
        assert_gone(below)


def test_a_web_server_that_stops_under_load_leaves_no_process_and_frees_its_port(tmp_path: Path) -> None:
    (tmp_path / "busy.py").write_text(_BUSY)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    web = BusyWeb(tmp_path, environment, port=(port := free_port()), processes=2)
    with web.running(), ThreadPoolExecutor(16) as clients:
        pool = urllib3.PoolManager(maxsize=16, retries=False)
        for _ in range(16):
            clients.submit(pool.request, "GET", f"{web.url}/busy")
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while web.log_path.read_text().count("busy") < 8:
            assert time.monotonic() < deadline, "no request came"
            time.sleep(0.05)
        below = psutil.Process(web.pid).children(recursive=True)
        assert len(below) >= 2
        web.stop(patience=1)
    assert_gone(below)
    assert require_free_port(str(port)) == port
