"""The published test vectors of LSP-25 and LSP-15."""

import json
from pathlib import Path
from typing import Any

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "data" / "lukso-vectors.json").read_text(encoding="utf-8")
)


def octets(text: str) -> bytes:
    """Return the bytes of 0x-hex text."""
    return bytes.fromhex(text.removeprefix("0x"))
