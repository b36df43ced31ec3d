"""Keeping all parts alive together: when one ends, or a signal comes, all end."""

import multiprocessing
import os
import shlex
import threading
from collections.abc import Callable, Sequence

from honcho.manager import Manager
from honcho.printer import Message

from devstack.console import complain, say
from devstack.lifelines import die_with_parent
from devstack.log_watch import LogWatch
from devstack.parts import Part
from devstack.services.server import Server

_POLL_SECONDS = 0.5
_SIGNALLED = {130, 143}


class Supervisor:
    """
    Runs parts under honcho and watches the servers that were started before them.

    `opening` runs beside them once all have started; the number it returns ends
    everything and becomes the result, None lets everything run on.
    """

    def __init__(
        self, parts: Sequence[Part], servers: Sequence[Server], opening: Callable[[], int | None]
    ) -> None:
        multiprocessing.set_start_method("fork", force=True)
        os.register_at_fork(after_in_child=die_with_parent)
        self._parts = {part.name: part for part in parts}
        self._servers = servers
        self._opening = opening
        self._manager = Manager(printer=_Listener(self._hear))
        self._started: set[str] = set()
        self._first_to_stop: str | None = None
        self._result: int | None = None
        self._over = threading.Event()

    def run(self) -> int:
        """Return when all have ended: the opening's result, 130 or 143 after a signal, else 1."""
        for part in self._parts.values():
            part.prepare()
            command = f"exec {shlex.join(part.launch())} > {shlex.quote(str(part.log_path))} 2>&1"
            self._manager.add_process(part.name, command, env=part.environment, cwd=part.directory)
        try:
            self._manager.loop()
        except KeyError:
            self._result = 130  # honcho trips over a signal that comes before every part has started
        finally:
            self._over.set()
            for child in multiprocessing.active_children():
                child.kill()
        return self._verdict()

    def _hear(self, line: str) -> None:
        """Take note of what honcho reports: `web started (pid=7)`, `web stopped (rc=1)`."""
        match line.split():
            case [name, "started", *_]:
                self._started.add(name)
                if self._started == set(self._parts):
                    for job in (self._open, self._watch):
                        threading.Thread(target=job, daemon=True).start()
            case [name, "stopped", *_]:
                self._first_to_stop = self._first_to_stop or name

    def _open(self) -> None:
        outcome = self._opening()
        if outcome is not None:
            self._end(outcome)

    def _watch(self) -> None:
        logs = LogWatch(part.log_path for part in self._parts.values())
        while not self._over.wait(_POLL_SECONDS):
            logs.report()
            for server in self._servers:
                if server.has_ended:
                    complain(f"{server.name} ended by itself: {server.last_words()}")
                    self._end(1)
                    return

    def _end(self, result: int) -> None:
        self._result = result if self._result is None else self._result
        self._manager.terminate()

    def _verdict(self) -> int:
        if self._result is not None:
            return self._result
        if self._manager.returncode in _SIGNALLED:
            return int(self._manager.returncode)
        part = self._parts[str(self._first_to_stop)]
        complain(f"{part.name} ended by itself: {part.last_words()}")
        return 1


class _Listener:
    """Takes the place of honcho's printer: the parts write to their own logs, honcho alone speaks here."""

    def __init__(self, hear: Callable[[str], None]) -> None:
        self.width = 0
        self._hear = hear

    def write(self, message: Message) -> None:
        """Show and pass on one line."""
        text = str(message.data).strip()
        say(f"  · {text}")
        self._hear(text)
