"""Paths of the project, and the dev stack's JSON files: private, written atomically."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
TOOLS = PROJECT / "tools"
DATA = PROJECT / "var"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file: of all processes one at a time runs the block."""
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def read_json(path: Path) -> dict[str, Any]:
    """Return the file's object, or an empty one without a file."""
    content: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return content


def write_json(path: Path, value: object) -> None:
    """Replace the file atomically; only its owner may read it."""
    draft = path.with_suffix(".draft")
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
        json.dump(value, file, indent=1)
        file.write("\n")
    draft.rename(path)
