"""The supervisor: one for all, all for one, and nothing is left behind."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

_SCRIPT = """
import os, signal, sys, time
from pathlib import Path
from devstack.lifelines import adopt_orphans, end_descendants
from devstack.parts import Part
from devstack.supervisor import Supervisor

class Sleeper(Part):
    def __init__(self, name, script):
        self.name = name
        self.script = script
        super().__init__(Path(sys.argv[1]), dict(os.environ))
    def command(self):
        return [sys.executable, "-c", self.script]
    def answers(self):
        return True

# It leaves a child that ignores SIGTERM, as a web server's process might.
PARENT = '''
import signal, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import signal,time; signal.signal(15, signal.SIG_IGN); time.sleep(99)"])
time.sleep(99)
'''
CRASH = "import sys, time; time.sleep(1); sys.exit('the disk is full')"
WAIT = "import time; time.sleep(99)"
def opening():
{opening}
adopt_orphans()
try:
    status = Supervisor([{parts}], [], opening).run()
finally:
    end_descendants()
sys.exit(status)
"""


@contextmanager
def supervised(folder: Path, parts: str, opening: str = "return None") -> Iterator[subprocess.Popen[str]]:
    """Yield a process that runs the parts; whatever happens, it is gone afterwards."""
    script = _SCRIPT.replace("{parts}", parts).replace("{opening}", textwrap.indent(opening, "    "))
    command = [sys.executable, "-c", script, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def descendants(process: subprocess.Popen[str], at_least: int) -> list[psutil.Process]:
    """Return everything below the process, once so many are there."""
    deadline = time.monotonic() + 20
    while len(found := psutil.Process(process.pid).children(recursive=True)) < at_least:
        assert time.monotonic() < deadline, "the parts did not start"
        time.sleep(0.05)
    return found


def test_the_result_of_the_opening_ends_every_part(tmp_path: Path) -> None:
    opening = "time.sleep(0.5)\nreturn 7"
    with supervised(tmp_path, "Sleeper('one', WAIT), Sleeper('two', PARENT)", opening) as process:
        below = descendants(process, 5)
        assert process.wait(20) == 7
    assert psutil.wait_procs(below, timeout=5)[1] == []


def test_a_part_that_ends_takes_the_others_along_and_its_last_words_are_shown(tmp_path: Path) -> None:
    with supervised(tmp_path, "Sleeper('one', CRASH), Sleeper('two', PARENT)") as process:
        below = descendants(process, 4)
        output = process.communicate(timeout=20)[0]
    assert process.returncode == 1
    assert "one ended by itself" in output
    assert "the disk is full" in output
    assert psutil.wait_procs(below, timeout=5)[1] == []


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_every_part(tmp_path: Path, number: signal.Signals, status: int) -> None:
    with supervised(tmp_path, "Sleeper('one', WAIT), Sleeper('two', PARENT)") as process:
        below = descendants(process, 5)
        time.sleep(0.5)
        os.kill(process.pid, number)
        assert process.wait(20) == status
    assert psutil.wait_procs(below, timeout=5)[1] == []


def test_a_killed_supervisor_takes_its_parts_along(tmp_path: Path) -> None:
    with supervised(tmp_path, "Sleeper('one', WAIT), Sleeper('two', WAIT)") as process:
        below = descendants(process, 4)
        time.sleep(0.5)
        os.kill(process.pid, signal.SIGKILL)
    assert psutil.wait_procs(below, timeout=10)[1] == []
