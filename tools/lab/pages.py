"""
Measure what each page of the service costs on a slow line: bytes, layout shift, and the largest contentful paint.

The browser's tests open the pages, on a phone and on a desktop, at 400 kbit/s with 150 ms to the service. The static
files are compressed as those of a checkout are, by gzip; the image's are smaller.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from devstack.console import echo
from devstack.files import read_json, write_json

_PROJECT = Path(__file__).resolve().parents[2]
LIMITS = _PROJECT / "tests" / "browser" / "page_costs.json"
_TEST = "tests/browser/test_page_costs.py"


def run(results: Path) -> int:
    """Open all pages, print their figures, write them to `results`; return 1 if one is above its limit."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pytest", "-q", "-n0", _TEST]
        status = subprocess.run(
            command, cwd=_PROJECT, env={**os.environ, "PAGE_COSTS": folder}, check=False
        ).returncode
        if status:
            return status
        measured = {path.stem: read_json(path) for path in sorted(Path(folder).glob("*.json"))}
    limits = json.loads(LIMITS.read_text(encoding="utf-8"))
    echo(f"{'page':22} {'window':>6} {'bytes':>8} {'shift':>6} {'paint ms':>8}")
    faults = []
    for window, pages in measured.items():
        for name, (size, moved, painted) in pages.items():
            broken = _above(limits, name, size, moved, painted)
            echo(f"{name:22} {window:>6} {size:8,} {moved:6.3f} {painted:8,.0f} {broken}")
            faults += [name] if broken else []
    write_json(results, measured)
    return 1 if faults else 0


def _above(limits: dict[str, Any], name: str, size: int, moved: float, painted: float) -> str:
    slower = limits["paint_milliseconds_of"].get(name, limits["paint_milliseconds"])
    broken = {
        "bytes": size > limits["bytes"][name],
        "shift": moved > limits["shift"],
        "paint": painted > slower,
    }
    return " ".join(f"✗ {what}" for what, is_broken in broken.items() if is_broken)
