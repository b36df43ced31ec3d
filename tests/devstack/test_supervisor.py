"""The supervisor: one for all, all for one, and nothing is left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

_PATIENCE_SECONDS = 60
# Whoever runs says so by a file; the folder is the first argument of every script.
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
from devstack.lifelines import adopt_orphans, end_descendants
from devstack.parts import Part
from devstack.supervisor import Supervisor

class Scripted(Part):
    def __init__(self, name, script):
        self.name = name
        self.script = script
        super().__init__(folder, dict(os.environ))
    def command(self):
        return [sys.executable, str(folder / self.script), str(folder)]
    def answers(self):
        return True

def opening():
    ready()
    {opening}
adopt_orphans()
try:
    status = Supervisor([Scripted("one", {one!r}), Scripted("two", {two!r})], [], opening).run()
finally:
    end_descendants()
sys.exit(status)
"""
_PARTS = {
    "wait": "ready(); time.sleep(999)",
    "crash": "ready(); wait_for_go(); sys.exit('the disk is full')",
    # It leaves a child that ignores SIGTERM, as a web server's process might.
    "parent": "subprocess.Popen([sys.executable, str(folder / 'stubborn'), str(folder)]); time.sleep(999)",
    "stubborn": "signal.signal(15, signal.SIG_IGN); ready(); time.sleep(999)",
}


@contextmanager
def supervised(
    folder: Path, one: str, two: str, opening: str = "return None"
) -> Iterator[subprocess.Popen[str]]:
    """Yield a process that runs two parts and has begun its opening; whatever happens, it is gone afterwards."""
    for name, script in _PARTS.items():
        (folder / name).write_text(_COMMON + script)
    script = _COMMON + _SUPERVISOR.format(one=one, two=two, opening=opening)
    command = [sys.executable, "-c", script, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            deadline = time.monotonic() + _PATIENCE_SECONDS
            while len(list(folder.glob("*.ready"))) < 3:
                assert time.monotonic() < deadline, "the parts did not start"
                time.sleep(0.02)
            yield process
        finally:
            process.kill()


def descendants(process: subprocess.Popen[str], number: int) -> list[psutil.Process]:
    """Return everything below the process, which is so many."""
    found = psutil.Process(process.pid).children(recursive=True)
    assert len(found) == number
    return found


def assert_gone(processes: list[psutil.Process]) -> None:
    """They end, all of them."""
    assert psutil.wait_procs(processes, timeout=_PATIENCE_SECONDS)[1] == []


def test_the_result_of_the_opening_ends_every_part(tmp_path: Path) -> None:
    with supervised(tmp_path, "wait", "parent", "wait_for_go(); return 7") as process:
        below = descendants(process, 5)
        (tmp_path / "go").touch()
        assert process.wait(_PATIENCE_SECONDS) == 7
    assert_gone(below)


def test_a_part_that_ends_takes_the_others_along_and_its_last_words_are_shown(tmp_path: Path) -> None:
    with supervised(tmp_path, "crash", "parent") as process:
        below = descendants(process, 5)
        (tmp_path / "go").touch()
        output = process.communicate(timeout=_PATIENCE_SECONDS)[0]
    assert process.returncode == 1
    assert "one ended by itself" in output
    assert "the disk is full" in output
    assert_gone(below)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_every_part(tmp_path: Path, number: signal.Signals, status: int) -> None:
    with supervised(tmp_path, "wait", "parent") as process:
        below = descendants(process, 5)
        os.kill(process.pid, number)
        assert process.wait(_PATIENCE_SECONDS) == status
    assert_gone(below)


def test_a_killed_supervisor_takes_its_parts_along(tmp_path: Path) -> None:
    with supervised(tmp_path, "wait", "wait") as process:
        below = descendants(process, 4)
        os.kill(process.pid, signal.SIGKILL)
    assert_gone(below)
