"""
Process lifetimes: no process outlives the stack.

On Linux, a process can request a signal at its parent's death, and become the parent of orphans below it. Elsewhere
these calls do nothing, and only an orderly stop (Ctrl-C, SIGTERM, a process that ended by itself) stops every process.
"""

import ctypes
import os
import pwd
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NoReturn

import psutil

_SET_PARENT_DEATH_SIGNAL = 1
_SET_CHILD_SUBREAPER = 36
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def unwind_on_signals() -> None:
    """
    Turn Ctrl-C, SIGTERM and a closed terminal into `SystemExit`, so every open block is left in order.

    A second signal does not interrupt that.
    """
    for number in _STOP_SIGNALS:
        signal.signal(number, _unwind)


def run_guarded(work: Callable[[], int]) -> int:
    """
    Run `work` in a child process and return its exit status; stop all its processes.

    If one of the two processes is killed, the other one stops everything below it. Ctrl-C is a success, because it is
    how a serving stack is stopped, and `make` would report any other status as an error.
    """
    child = os.fork()
    if child == 0:
        _prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
        sys.exit(_run_and_clean_up(work))
    for number in _STOP_SIGNALS:
        signal.signal(number, lambda received, _: _pass_on(received, child))
    _adopt_orphans()
    _, status = os.waitpid(child, 0)
    end_descendants()
    exit_code = os.waitstatus_to_exitcode(status)
    exit_code = exit_code if exit_code >= 0 else 128 - exit_code
    return 0 if exit_code == 128 + signal.SIGINT else exit_code


def with_death_signal(command: Sequence[str], ending: signal.Signals) -> list[str]:
    """Return `command`, wrapped to receive `ending` when the thread that starts it ends."""
    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    return [setpriv, f"--pdeathsig={ending.name}", "--", *command] if setpriv else list(command)


def unprivileged(command: Sequence[str]) -> list[str]:
    """
    Return `command`, wrapped so that root runs it as the account `nobody`.

    PostgreSQL refuses to run as root. It keeps one capability, to reach programs and data below folders that only root
    may enter.
    """
    if os.geteuid() != 0:
        return list(command)
    if shutil.which("setpriv") is None:
        raise RuntimeError("PostgreSQL does not run as root: install setpriv, or use another account.")
    nobody = pwd.getpwnam("nobody")
    identity = [f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
    # The secure bit keeps the capability effective for access(), which initdb calls first.
    reach = [
        "--inh-caps=+dac_override",
        "--ambient-caps=+dac_override",
        "--securebits=+no_setuid_fixup",
    ]
    return ["setpriv", *identity, *reach, "--", *command]


def end_descendants(*, patience: float = 10) -> None:
    """Wait for all remaining descendants; then kill the rest."""
    remaining = psutil.wait_procs(psutil.Process().children(recursive=True), timeout=patience)[1]
    for process in remaining:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(remaining, timeout=patience)


def _run_and_clean_up(work: Callable[[], int]) -> int:
    _adopt_orphans()
    unwind_on_signals()
    try:
        return work()
    finally:
        end_descendants(patience=0)


def _adopt_orphans() -> None:
    """Make this process the parent of every descendant whose own parent ends."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def _pass_on(number: int, child: int) -> None:
    """Forward a signal to the child; after Ctrl-C it gets a harmless second one."""
    with suppress(ProcessLookupError):
        os.kill(child, number)


def _unwind(number: int, _: object) -> NoReturn:
    for stop in _STOP_SIGNALS:
        signal.signal(stop, signal.SIG_IGN)
    raise SystemExit(128 + number)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
