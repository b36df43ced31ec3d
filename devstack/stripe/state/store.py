"""Everything the account holds: in memory for reading, in SQLite so that a restart continues."""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from devstack.stripe.state.things import Thing

_TABLE = """
CREATE TABLE IF NOT EXISTS things (
    position INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL,
    UNIQUE (kind, id)
)
"""

Watcher = Callable[[str, str, Thing | None], None]


class KeepsWork(Exception):
    """A refusal that does not undo what was done before it."""


class Store:
    """
    Things by kind and id, in the order in which they came.

    Whoever changes a thing asks for it with `get` inside a `unit`: the unit writes
    every change when it ends well, and takes all of them back when it does not.
    """

    def __init__(self, path: Path) -> None:
        self.lock = threading.RLock()
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._database.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; {_TABLE};")
        self._things: dict[str, dict[str, Thing]] = {}
        self._before: dict[tuple[str, str], str | None] = {}
        self._depth = 0
        self._worker = 0
        self._watchers: list[Watcher] = []
        for kind, identifier, body in self._database.execute(
            "SELECT kind, id, body FROM things ORDER BY position"
        ):
            self._things.setdefault(kind, {})[identifier] = json.loads(body)

    @contextmanager
    def unit(self) -> Iterator[None]:
        """Hold the lock; keep all changes of the block or none. Units nest into one."""
        with self.lock:
            self._depth += 1
            self._worker = threading.get_ident()
            try:
                yield
            except KeepsWork:
                self._finish()
                raise
            except BaseException:
                self._undo()
                raise
            else:
                self._finish()
            finally:
                self._depth -= 1

    def watch(self, watcher: Watcher) -> None:
        """Tell of every change from now on, when its unit has ended well; None for what is gone."""
        self._watchers.append(watcher)

    def add(self, thing: Thing) -> Thing:
        """Keep a new thing."""
        key = (thing["object"], thing["id"])
        self._before.setdefault(key, None)
        self._things.setdefault(key[0], {})[key[1]] = thing
        return thing

    def get(self, kind: str, identifier: str) -> Thing | None:
        """Return the thing to be read or changed; None where there is none."""
        thing = self._things.get(kind, {}).get(identifier)
        working = self._depth > 0 and self._worker == threading.get_ident()
        if thing is not None and working and (kind, identifier) not in self._before:
            self._before[kind, identifier] = json.dumps(thing)
        return thing

    def all(self, kind: str) -> list[Thing]:
        """Return every thing of the kind, oldest first, to be read only."""
        return list(self._things.get(kind, {}).values())

    def remove(self, kind: str, identifier: str) -> None:
        """Forget one thing."""
        if self.get(kind, identifier) is not None:
            del self._things[kind][identifier]

    def clear(self) -> None:
        """Forget everything, at once and for good."""
        things, self._things, self._before = self._things, {}, {}
        self._database.execute("DELETE FROM things")
        for kind, found in things.items():
            for identifier in found:
                self._tell(kind, identifier)

    def close(self) -> None:
        """Let go of the file."""
        with self.lock:
            self._database.close()

    def _tell(self, kind: str, identifier: str) -> None:
        thing = self._things.get(kind, {}).get(identifier)
        for watcher in self._watchers:
            watcher(kind, identifier, thing)

    def _finish(self) -> None:
        if self._depth > 1:
            return
        before, self._before = self._before, {}
        self._database.execute("BEGIN")
        for (kind, identifier), old in before.items():
            self._write(kind, identifier, old)
        self._database.execute("COMMIT")
        for kind, identifier in before:
            self._tell(kind, identifier)

    def _write(self, kind: str, identifier: str, old: str | None) -> None:
        thing = self._things.get(kind, {}).get(identifier)
        if thing is None:
            self._database.execute("DELETE FROM things WHERE kind = ? AND id = ?", (kind, identifier))
            return
        body = json.dumps(thing)
        if old is None:
            self._database.execute(
                "INSERT OR REPLACE INTO things (kind, id, body) VALUES (?, ?, ?)", (kind, identifier, body)
            )
        elif body != old:
            self._database.execute(
                "UPDATE things SET body = ? WHERE kind = ? AND id = ?", (body, kind, identifier)
            )

    def _undo(self) -> None:
        if self._depth > 1:
            return
        before, self._before = self._before, {}
        for (kind, identifier), old in before.items():
            if old is None:
                self._things[kind].pop(identifier, None)
            else:
                self._things.setdefault(kind, {})[identifier] = json.loads(old)
