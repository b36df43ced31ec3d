"""Which tests call which functions, recorded once per version of a test file."""

import ast
import functools
import hashlib
import math
import re
import sys
import threading
import time
import types
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from devstack.files import DATA, PROJECT, read_json, write_json

_FILE = DATA / "mutation.json"
_PREFIX = f"{PROJECT}/"
_NAMES_FUNCTION = re.compile(r"CREATE OR REPLACE FUNCTION (\w+)")
_NAMES_STATEMENT = re.compile(r"^-- name: (\w+)", re.MULTILINE)


class TestMap:
    """Each test's calls and duration; tests that fail without a mutant are left out."""

    def __init__(self) -> None:
        self._files: dict[str, dict[str, Any]] = read_json(_FILE)

    def learn(self, tests: dict[str, Callable[[], bool]]) -> None:
        """Run each test of changed files; the value of a test runs it and returns whether it passes."""
        by_file = defaultdict(list)
        for name in tests:
            by_file[name.partition("::")[0]].append(name)
        for file, names in by_file.items():
            digest = hashlib.sha256((PROJECT / file).read_bytes()).hexdigest()
            if self._files.get(file, {}).get("digest") != digest:
                learned = {name: _trace(tests[name]) for name in names}
                passed = {name: record for name, record in learned.items() if record}
                print(f"{file}: {len(passed)} of {len(learned)} pass", flush=True)
                self._files[file] = {"digest": digest, "tests": passed}
                write_json(_FILE, self._files)

    def tests_of(self, functions: Iterable[str]) -> dict[str, float]:
        """Return the tests that call one of these functions, with their seconds."""
        wanted = set(functions)
        return {
            name: float(record["seconds"])
            for file in self._files.values()
            for name, record in file["tests"].items()
            if not wanted.isdisjoint(record["functions"])
        }


class Likeness:
    """Ranks tests by words shared with a mutant; rare words count more, long tests less."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._words = {name: words_of(text) for name, text in texts.items()}
        counts = Counter(word for words in self._words.values() for word in words)
        self._weights = {word: math.log(len(texts) / count) for word, count in counts.items()}

    def of(self, test: str, words: set[str]) -> float:
        """Return the similarity of a test to these words."""
        common = self._words[test] & words
        return sum(self._weights[word] for word in common) / math.sqrt(len(self._words[test]) + 10)


def words_of(text: str) -> set[str]:
    """Return the stems of the words of a text or of code."""
    return {word[:6].lower() for word in re.findall(r"[A-Za-z]{3,}", text)}


def _trace(run: Callable[[], bool]) -> dict[str, Any] | None:
    """Run a test and return the functions it called; None if it failed."""
    codes: set[types.CodeType] = set()

    def called(frame: types.FrameType, event: str, _: Any) -> None:
        codes.add(frame.f_code)

    threading.settrace(called)
    sys.settrace(called)
    began = time.monotonic()
    try:
        passed = run()
    finally:
        sys.settrace(None)
        threading.settrace(None)
    own = {code for code in codes.copy() if code.co_filename.startswith(_PREFIX)}
    functions = {
        f"{code.co_filename.removeprefix(_PREFIX)}::{code.co_qualname.partition('.<locals>')[0]}"
        for code in own
    }
    return {"seconds": round(time.monotonic() - began, 3), "functions": sorted(functions)} if passed else None


@functools.cache
def users_of(name: str) -> set[str]:
    """Return the functions that use a constant or a database function, directly or through a constant."""
    names, users = {name}, set[str]()
    while True:
        constants = {
            constant
            for file in _sources()
            for constant, text in _constants(file)
            if any(n in text for n in names)
        }
        for sql in PROJECT.glob("*/functions.sql"):
            constants |= {
                part for part, text in sql_functions(sql.read_text()) if any(n in text for n in names)
            }
        if constants <= names:
            break
        names |= constants
    for file in _sources():
        users |= {function for function, words in _functions(file) if not names.isdisjoint(words)}
        for statement, _, text in statements_of(file.with_suffix(".sql")):
            if any(n in text for n in names):
                users |= users_of_statement(file, statement)
    return users


def users_of_statement(path: Path, name: str) -> set[str]:
    """Return the functions that use a statement of the file beside its module, directly or through a constant."""
    file = path.with_suffix(".py")
    own, files = ("_Sql", [file]) if "class _Sql(" in file.read_text() else ("Sql", _sources())
    users = {function for other in files for function, words in _functions(other) if {own, name} <= words}
    return users.union(
        *(users_of(constant) for constant, text in _constants(file) if re.search(rf"_Sql\.{name}\b", text))
    )


def is_of_functions(file: str) -> bool:
    """Return whether a file has SQL functions, and not statements."""
    return file.endswith(("functions.sql", "retired.sql")) and not file.endswith("sql_functions.sql")


def statements_of(path: Path) -> list[tuple[str, int, str]]:
    """Return the statements of a file, each with its name, line and text; none if there is no such file."""
    if not path.exists() or is_of_functions(path.name):
        return []
    text = path.read_text()
    starts = [*_NAMES_STATEMENT.finditer(text)]
    ends = [start.start() for start in starts[1:]] + [len(text)]
    return [
        (start[1], text.count("\n", 0, start.start()) + 1, text[start.end() : end])
        for start, end in zip(starts, ends, strict=True)
    ]


def sql_functions(text: str) -> list[tuple[str, str]]:
    """Return the functions that an SQL file creates, each with its text."""
    starts = [*_NAMES_FUNCTION.finditer(text)]
    ends = [start.start() for start in starts[1:]] + [len(text)]
    return [(start[1], text[start.start() : end]) for start, end in zip(starts, ends, strict=True)]


def _sources() -> list[Path]:
    packages = (
        "credits",
        "proofs",
        "relay",
        "users",
        "earnings",
        "payments",
        "rewards",
        "gateway",
        "checkin",
        "portal",
    )
    return [
        path
        for package in packages
        for path in (PROJECT / package).rglob("*.py")
        if "migrations" not in path.parts
    ]


@functools.cache
def _constants(file: Path) -> list[tuple[str, str]]:
    return [
        (statement.targets[0].id, ast.unparse(statement.value))
        for statement in ast.parse(file.read_text()).body
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    ]


@functools.cache
def _functions(file: Path) -> list[tuple[str, set[str]]]:
    """Return the functions of the file, each with its words."""
    functions = []
    tree = ast.parse(file.read_text())
    for owner, prefix in [(tree, "")] + [(c, f"{c.name}.") for c in tree.body if isinstance(c, ast.ClassDef)]:
        for node in owner.body:
            if isinstance(node, ast.FunctionDef):
                words = set(re.findall(r"\w+", ast.unparse(node)))
                functions.append((f"{file.relative_to(PROJECT)}::{prefix}{node.name}", words))
    return functions
