"""The account's resources, in memory and, for restarts, in SQLite."""

import copy
import json
import secrets
import sqlite3
import string
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# A resource is a JSON object with `object` (its kind) and `id`. Members and kinds that start
# with `_` are internal and never rendered.
Resource = dict[str, Any]
_ALPHABET = string.ascii_letters + string.digits
_TABLE = """
CREATE TABLE IF NOT EXISTS resources (
    position INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL,
    UNIQUE (kind, id)
)
"""
ChangeListener = Callable[[str, str, Resource | None], None]


def new_id(prefix: str, length: int = 24) -> str:
    """Return a unique id."""
    return f"{prefix}_{''.join(secrets.choice(_ALPHABET) for _ in range(length))}"


# The number of items that a list inside a resource contains; its `url` lists all of them.
EMBEDDED = 10


def public(value: Any, *, inner: bool = False) -> Any:
    """Return a copy of the value without internal members; a list inside it is cut to its first page."""
    if isinstance(value, dict):
        shown = {key: public(item, inner=True) for key, item in value.items() if not key.startswith("_")}
        if inner and shown.get("object") == "list" and len(shown["data"]) > EMBEDDED:
            shown.update(data=shown["data"][:EMBEDDED], has_more=True)
        return shown
    if isinstance(value, list):
        return [public(item, inner=True) for item in value]
    return copy.copy(value)


def difference(before: Resource, after: Resource) -> Resource:
    """Return the previous values of changed members, nested as in the resource."""
    changed: Resource = {}
    for key in before.keys() | after.keys():
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        changed[key] = difference(old, new) if isinstance(old, dict) and isinstance(new, dict) else old
    return changed


def list_object(resources: list[Resource], url: str) -> Resource:
    """Return a Stripe list that holds all of the resources."""
    return {"object": "list", "data": resources, "has_more": False, "url": url}


def apply_fields(resource: Resource, params: dict[str, Any], names: Collection[str]) -> None:
    """Set the named members in the request; `metadata` is merged, an empty value removes its key."""
    for name in names:
        if name in params and name != "metadata":
            resource[name] = params[name]
    if "metadata" in params and "metadata" in names:
        merged = {} if params["metadata"] is None else {**resource["metadata"], **params["metadata"]}
        resource["metadata"] = {key: text for key, text in merged.items() if text != ""}


class CommittingError(Exception):
    """An error that leaves a transaction but commits it."""


class Store:
    """
    Resources by kind and id, in the order in which they were created.

    A resource is changed in place: `get` it inside a `transaction`, which commits all changes, or rolls them back
    after an error.
    """

    def __init__(self, path: Path) -> None:
        self.lock = threading.RLock()
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._database.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; {_TABLE};")
        self._resources: dict[str, dict[str, Resource]] = {}
        self._originals: dict[
            tuple[str, str], str | None
        ] = {}  # the resources read in this transaction, as JSON
        self._depth = 0
        self._writer = 0
        self._listeners: list[ChangeListener] = []
        rows = self._database.execute("SELECT kind, id, body FROM resources ORDER BY position")
        for kind, identifier, body in rows:
            self._resources.setdefault(kind, {})[identifier] = json.loads(body)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the lock; commit all changes of the block or none. A nested one joins the outer one."""
        with self.lock:
            self._depth += 1
            self._writer = threading.get_ident()
            try:
                yield
            except CommittingError:
                self._commit()
                raise
            except BaseException:
                self._roll_back()
                raise
            else:
                self._commit()
            finally:
                self._depth -= 1

    def on_change(self, listener: ChangeListener) -> None:
        """Call the listener after each committed change; with None for a removed resource."""
        self._listeners.append(listener)

    def add(self, resource: Resource) -> Resource:
        """Store a new resource."""
        key = (resource["object"], resource["id"])
        self._originals.setdefault(key, None)
        self._resources.setdefault(key[0], {})[key[1]] = resource
        return resource

    def get(self, kind: str, identifier: str) -> Resource | None:
        """Return the resource, for reading or changing, or None."""
        resource = self._resources.get(kind, {}).get(identifier)
        writing = self._depth > 0 and self._writer == threading.get_ident()
        if resource is not None and writing and (kind, identifier) not in self._originals:
            self._originals[kind, identifier] = json.dumps(resource)
        return resource

    def all(self, kind: str) -> list[Resource]:
        """Return every resource of the kind, oldest first, for reading only."""
        return list(self._resources.get(kind, {}).values())

    def remove(self, kind: str, identifier: str) -> None:
        """Remove one resource."""
        if self.get(kind, identifier) is not None:
            del self._resources[kind][identifier]

    def clear(self) -> None:
        """Remove everything permanently."""
        removed, self._resources, self._originals = self._resources, {}, {}
        self._database.execute("DELETE FROM resources")
        for kind, resources in removed.items():
            for identifier in resources:
                self._notify(kind, identifier)

    def _notify(self, kind: str, identifier: str) -> None:
        resource = self._resources.get(kind, {}).get(identifier)
        for listener in self._listeners:
            listener(kind, identifier, resource)

    def _commit(self) -> None:
        if self._depth > 1:
            return
        originals, self._originals = self._originals, {}
        self._database.execute("BEGIN")
        for (kind, identifier), original in originals.items():
            self._write(kind, identifier, original)
        self._database.execute("COMMIT")
        for kind, identifier in originals:
            self._notify(kind, identifier)

    def _write(self, kind: str, identifier: str, original: str | None) -> None:
        resource = self._resources.get(kind, {}).get(identifier)
        if resource is None:
            self._database.execute("DELETE FROM resources WHERE kind = ? AND id = ?", (kind, identifier))
            return
        body = json.dumps(resource)
        if original is None:
            statement = "INSERT OR REPLACE INTO resources (kind, id, body) VALUES (?, ?, ?)"
            self._database.execute(statement, (kind, identifier, body))
        elif body != original:
            statement = "UPDATE resources SET body = ? WHERE kind = ? AND id = ?"
            self._database.execute(statement, (body, kind, identifier))

    def _roll_back(self) -> None:
        if self._depth > 1:
            return
        originals, self._originals = self._originals, {}
        for (kind, identifier), original in originals.items():
            if original is None:
                self._resources[kind].pop(identifier, None)
            else:
                self._resources.setdefault(kind, {})[identifier] = json.loads(original)
