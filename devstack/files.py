"""Where the dev stack finds the project and keeps its own files: small, private, written whole or not at all."""

import json
import os
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
DATA = PROJECT / "var"


def read_json(path: Path) -> dict[str, Any]:
    """Return the file's object; an empty one where there is no file."""
    content: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return content


def write_json(path: Path, value: object) -> None:
    """Replace the file in one step by one that only its owner may read."""
    draft = path.with_suffix(".draft")
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
        json.dump(value, file, indent=1)
        file.write("\n")
    draft.rename(path)
