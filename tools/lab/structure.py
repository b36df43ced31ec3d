"""
Measure the structure of the code: `python -m lab structure [CHECKOUT]` prints a table.

Files and imports are parsed, not imported, so any checkout of this project can be measured. For each path, the
checkout's own pytest runs one test, with this file as a plugin that records the modules it passes through. A switch is
a call from one product module into another; product packages are all top-level packages not in `_OUTSIDE`.
"""

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from statistics import median, quantiles
from types import FrameType
from typing import Any

import pytest

_OUTSIDE = {"tests", "devstack", "stripe_double", "lab", "clients", "docs"}
_SKIPPED = {"migrations", "node_modules", "__pycache__"}

# A path is a test and, after "@", a part of the entry's name: a request's path, a task's name, or the
# package.module.function that the test calls.
_PATHS = {
    "execute": "tests/relay/api/test_execute.py::test_the_response_to_a_call_is_only_its_hash@/relay/execute",
    "broadcast": "tests/relay/services/test_query_counts.py"
    "::test_a_broadcast_of_all_relayers_costs_what_one_costs@broadcasting.broadcast",
    "track": "tests/relay/services/test_query_counts.py"
    "::test_tracking_and_settling_a_block_cost_a_constant@tracking._track",
    "webhook": "tests/payments/api/test_webhook.py"
    "::test_a_signed_event_is_stored_as_the_bytes_that_were_signed@/webhooks/stripe",
    "payout": "tests/payments/services/test_payouts.py"
    "::test_a_payout_is_the_collected_amount_at_the_rate_in_force@events.process",
    "postback": "tests/earnings/test_api_postbacks.py"
    "::test_every_network_is_accepted_over_http[tapjoy]@/postbacks/tapjoy",
}
_PLUGIN, _RESULT = "measured_paths", "passages.jsonl"


@dataclass(frozen=True)
class Source:
    """A Python file: the module's name, its number of lines and its syntax tree."""

    module: str
    is_package: bool
    lines: int
    tree: ast.Module

    @property
    def is_empty_package(self) -> bool:
        """Whether this is an `__init__.py` with a docstring at most."""
        return self.is_package and len(self.tree.body) == (ast.get_docstring(self.tree) is not None)

    def imports(self, modules: set[str]) -> set[str]:
        """Return those of the modules that are imported here (absolutely, as everywhere in this project)."""
        names: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                members = {f"{node.module}.{alias.name}" for alias in node.names}
                # A name that is not a module is defined in the package.
                names |= members if members <= modules else {*members, node.module}
        return names & modules - {self.module}


def _sources(checkout: Path, package: str) -> Iterator[Source]:
    for folder, names, files in os.walk(checkout / package):
        names[:] = [name for name in names if name not in _SKIPPED]
        for path in (Path(folder, file) for file in files if file.endswith(".py")):
            text = path.read_text()
            module = ".".join(path.relative_to(checkout).with_suffix("").parts).removesuffix(".__init__")
            yield Source(module, path.stem == "__init__", len(text.splitlines()), ast.parse(text))


def _product_packages(checkout: Path) -> list[str]:
    return sorted({path.parent.name for path in checkout.glob("*/__init__.py")} - _OUTSIDE)


def _package(module: str) -> str:
    return module.partition(".")[0]


def measure_product(checkout: Path) -> dict[str, object]:
    """Measure the product's files and the imports between them."""
    packages = _product_packages(checkout)
    sources = [source for package in packages for source in _sources(checkout, package)]
    lines = [source.lines for source in sources if not source.is_empty_package]
    names = {source.module for source in sources}
    imports = {source.module: source.imports(names) for source in sources}
    modules = [source.module for source in sources if not source.is_package]
    importers = [sum(module in imported for imported in imports.values()) for module in modules]
    edges = {(_package(module), _package(name)) for module, imported in imports.items() for name in imported}
    pairs = [pair for pair in combinations(packages, 2) if {pair, pair[::-1]} <= edges]
    return {
        "product: files": len(lines),
        "product: empty __init__.py, not counted above and below": len(sources) - len(lines),
        "product: lines": sum(lines),
        "product: lines of a file, median": round(median(lines)),
        "product: lines of a file, p90": round(quantiles(lines, n=10)[-1]),
        "product: files under 40 lines": sum(count < 40 for count in lines),
        "product: files over 350 lines": sum(count > 350 for count in lines),
        "product: modules (files that are no __init__.py)": len(modules),
        "product: modules with exactly one importer": importers.count(1),
        "product: pairs of packages that import each other": len(pairs),
        "product: these pairs": ", ".join("-".join(pair) for pair in pairs),
    }


def measure_outside(checkout: Path) -> dict[str, object]:
    """Measure the dev stack, the Stripe double, the lab and the tests."""
    rows: dict[str, object] = {}
    lines: defaultdict[str, list[int]] = defaultdict(list)
    for package in ("devstack", "stripe_double", "lab", "tests"):
        # Commits before the folder `tools` have them beside the product.
        place = f"tools/{package}" if (checkout / "tools" / package).is_dir() else package
        for source in _sources(checkout, place):
            if not source.is_empty_package:
                lines[package].append(source.lines)
    for title, counts in lines.items():
        rows |= {f"{title}: files": len(counts), f"{title}: lines": sum(counts)}
    return rows


@dataclass
class Passage:
    """The calls between an entry into the product and its return, on the test's thread."""

    entry: str
    modules: set[str] = field(default_factory=set)
    switches: int = 0


class Recorder:
    """A profile function that records a passage for each request, each task and each call by the tests."""

    def __init__(self, checkout: Path) -> None:
        """Record the calls in the product packages of this checkout."""
        self.passages: list[Passage] = []
        self._packages, self._root = set(_product_packages(checkout)), f"{checkout}/"
        self._stack: list[str] = []  # the modules of the product's open frames since the entry
        self._entry: FrameType | None = None
        self._import: FrameType | None = None

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Follow a call or a return, except during the first import of a module."""
        if self._import is not None:
            if frame is self._import and event == "return":
                self._import = None
        elif event == "call" and frame.f_code.co_name == "<module>":
            self._import = frame
        elif event == "call":
            self._call(frame)
        elif event == "return" and self._entry is not None:
            if _package(self._module(frame)) in self._packages:
                del self._stack[-1:]
            if frame is self._entry:
                self._entry = None

    def _call(self, frame: FrameType) -> None:
        module = self._module(frame)
        if self._entry is None and (name := self._entry_name(frame, module)):
            self._entry, self._stack = frame, []
            self.passages.append(Passage(name))
        if self._entry is not None and _package(module) in self._packages:
            self.passages[-1].modules.add(module)
            self.passages[-1].switches += self._stack[-1:] not in ([], [module])
            self._stack.append(module)

    def _entry_name(self, frame: FrameType, module: str) -> str:
        file, name, caller = frame.f_code.co_filename, frame.f_code.co_qualname, frame.f_back
        if file.endswith("django/core/handlers/base.py") and name == "BaseHandler.get_response":
            return str(frame.f_locals["request"].path)
        if file.endswith("celery/app/task.py") and name == "Task.__call__":
            return str(frame.f_locals["self"].name)
        is_called_by_tests = caller is not None and _package(self._module(caller)) == "tests"
        return f"{module}.{name}" if is_called_by_tests and _package(module) in self._packages else ""

    def _module(self, frame: FrameType) -> str:
        path = frame.f_code.co_filename.removesuffix(".py").removesuffix("/__init__")
        return path.removeprefix(self._root).replace("/", ".") if path.startswith(self._root) else ""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Record the passages of a test (a hook of pytest)."""
    recorder = Recorder(item.config.rootpath)
    sys.setprofile(recorder)
    try:
        return (yield)
    finally:
        sys.setprofile(None)
        with Path(__file__).with_name(_RESULT).open("a") as result:
            for one in recorder.passages:
                print(json.dumps([item.nodeid, one.entry, len(one.modules), one.switches]), file=result)


def measure_paths(checkout: Path, paths: dict[str, str]) -> dict[str, object]:
    """Run the tests of the paths; of several passages, the one through the most modules counts."""
    wanted = {name: path.rpartition("@")[::2] for name, path in paths.items()}
    passages = _run(checkout, list(dict.fromkeys(test for test, _ in wanted.values())))
    rows: dict[str, object] = {}
    for name, (test, entry) in wanted.items():
        counts = [
            counts for node_id, label, *counts in passages if node_id.startswith(test) and entry in label
        ]
        if not counts:
            raise SystemExit(f"{name}: {test} goes through no request, task or function named {entry}")
        modules, switches = max(counts)
        rows |= {f"path {name}: modules": modules, f"path {name}: switches": switches}
    return rows


def _run(checkout: Path, tests: list[str]) -> list[Any]:
    python = checkout / ".venv/bin/python"
    # A different name, because the checkout may contain this file.
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(__file__, Path(folder, f"{_PLUGIN}.py"))
        command = [python if python.exists() else sys.executable, "-m", "pytest", "-q", "-p", _PLUGIN, *tests]
        environment = {**os.environ, "PYTHONPATH": folder}
        run = subprocess.run(command, cwd=checkout, env=environment, stdout=sys.stderr, check=False)
        if run.returncode:
            raise SystemExit("The tests of the paths did not pass; --path names another test for a path.")
        return [json.loads(line) for line in Path(folder, _RESULT).read_text().splitlines()]


def main(arguments: list[str]) -> int:
    """Print the table of a checkout."""
    parser = argparse.ArgumentParser(prog="python -m lab structure", description=__doc__)
    parser.add_argument("checkout", nargs="?", type=Path, default=Path(__file__).parents[2])
    parser.add_argument("--static", action="store_true", help="only files and imports; runs no test")
    parser.add_argument("--path", action="append", default=[], metavar="NAME=TEST@ENTRY", help="its test")
    options = parser.parse_args(arguments)
    checkout = options.checkout.resolve()
    rows = measure_product(checkout) | measure_outside(checkout)
    if not options.static:
        rows |= measure_paths(checkout, _PATHS | dict(path.split("=", 1) for path in options.path))
    for title, value in rows.items():
        print(f"{title:<{max(map(len, rows))}}  {value}")
    return 0
