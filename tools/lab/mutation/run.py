"""
`python -m lab mutation`: apply one mutant at a time and run the tests that execute the mutated code.

One process starts the servers and collects the tests. For each mutant it forks. The child applies the mutant to its own
code or to the function in the database, and runs tests until one fails; its exit status is the result. Results are
added to a file, and a mutant in the file is not tried again. Results of code that has changed are removed first.
"""

import gc
import inspect
import math
import os
import random
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from typing import Any

import psycopg
import pytest
import urllib3
from _pytest.runner import runtestprotocol
from django.conf import settings
from django.db import connection, connections
from pytest_django.plugin import blocking_manager_key

from devstack.files import PROJECT, read_json, write_json
from devstack.rpc import Rpc
from lab.mutation.python_mutants import Mutant, find_functions, mutants_of, put_in
from lab.mutation.sql_mutants import mutants_of_sql
from lab.mutation.tests_of import (
    Likeness,
    TestMap,
    is_of_functions,
    sql_functions,
    statements_of,
    users_of,
    users_of_statement,
    words_of,
)

AREAS = {
    "ledger": (
        "credits/services/*.*",
        "proofs/services/*.*",
        "credits/queries.*",
        "credits/functions.sql",
    ),
    "relay": ("relay/services/*/*.*", "relay/queries/*.*", "relay/pricing.py", "relay/api/[lv]*.py"),
    "relay in the database": ("relay/functions.sql",),
    "sign-in": (
        "users/services/*.*",
        "users/tokens.py",
        "users/keys.py",
        "users/queries.*",
        "users/api/[av]*.py",
    ),
    "postbacks": (
        "earnings/services/*.*",
        "earnings/networks/*.py",
        "earnings/states.py",
        "earnings/api.py",
    ),
    "payouts": ("payments/services/payouts.py", "payments/services/clawbacks.py"),
}
TESTS = (
    "tests/credits",
    "tests/proofs",
    "tests/relay",
    "tests/users",
    "tests/earnings",
    "tests/payments/services/test_[ceps][lvay]*.py",
    "tests/payments/test_admin_rates.py",
    "tests/payments/api",
    "tests/rewards/services",
    "tests/gateway/metrics",
    "tests/portal/api",
    "tests/checkin/services",
)
_KILLED, _SURVIVED, _ENDLESS, _INVALID = "killed", "survived", "endless", "invalid"
# Edited by hand, with the reason after a colon.
_EQUIVALENT = "equivalent"
_OWNER = "postgres"
# After this many mutants, the tests of one are run without it and must pass.
_CONTROL = 20
_STATUSES = {0: _SURVIVED, 1: _KILLED, 3: _INVALID}


@dataclass(frozen=True)
class Options:
    """Minutes, wanted results and seed; `again` retries survivors with these tests."""

    minutes: float
    count: int
    seed: int
    results: Path
    again: bool
    seconds: float
    only: str
    tests: list[str]


def run(options: Options) -> int:
    """Try mutants until there are enough results or the time is over; return the exit status."""
    tests = options.tests or [str(path) for pattern in TESTS for path in sorted(PROJECT.glob(pattern))]
    arguments = ["-n0", "-q", "-s", *tests]
    return int(pytest.main(arguments, plugins=[_Plugin(options)]))


class _Plugin:
    def __init__(self, options: Options) -> None:
        self._options = options

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """A pytest plugin that runs the mutants instead of the tests."""
        with session.config.stash[blocking_manager_key].unblock():
            _Runner(session, self._options).run()
        return True


class _Runner:
    """Forks for each mutant, from a process that has run one test to start the servers."""

    def __init__(self, session: pytest.Session, options: Options) -> None:
        self._items = {item.nodeid: item for item in session.items if isinstance(item, pytest.Function)}
        self._options = options
        self._results: dict[str, str] = read_json(options.results)
        self._map = TestMap()
        first = next(item for item in session.items if "db" in getattr(item, "fixturenames", ()))
        if _fails(first):
            raise RuntimeError(f"{first.nodeid} fails without any change.")
        self._leave_no_connection()

    def run(self) -> None:
        """Remove stale results, record the tests' calls, try mutants, and print the table of all results."""
        began = time.monotonic()
        self._forget_changed_code()
        if self._options.minutes > 0:
            self._try_mutants(began)
        print(_table(self._results))

    def _forget_changed_code(self) -> None:
        names = {name for mutants in _all_mutants().values() for name, _ in mutants}
        for name in sorted(self._results.keys() - names):
            print(f"removed, because the code has changed: {name}")
            del self._results[name]
        self._write()

    def _write(self) -> None:
        write_json(self._options.results, dict(sorted(self._results.items())))
        self._options.results.chmod(0o644)

    def _try_mutants(self, began: float) -> None:
        self._fork(lambda: self._map.learn({name: self._passes(name) for name in self._items}), seconds=7_200)
        self._map = TestMap()
        texts = {name: f"{name} {inspect.getsource(item.function)}" for name, item in self._items.items()}
        self._likeness = Likeness(texts)
        gc.unfreeze()  # undo `gc.freeze` of the tests' set-up
        find_functions()
        gc.freeze()  # children share these objects, because their garbage collector does not touch them
        for number, (name, mutant) in enumerate(self._chosen(), 1):
            if time.monotonic() - began > 60 * self._options.minutes:
                break
            moment = time.monotonic()
            tests = self._tests_of(mutant)
            if (
                number % _CONTROL == 0
                and self._fork(partial(self._judge, None, tests), seconds=600) != _SURVIVED
            ):
                raise RuntimeError(f"Without a mutant, one of these fails: {tests}")
            outcome = self._try(mutant, tests) if tests else _SURVIVED
            if outcome != _INVALID:
                self._results[name] = outcome
                self._write()
            where = f"{mutant.file}:{mutant.line}"
            print(
                f"{outcome} {time.monotonic() - moment:.1f} s, {len(tests)} tests, {where} | {name}",
                flush=True,
            )

    def _chosen(self) -> Iterator[tuple[str, Mutant]]:
        """Yield mutants of each area in turn, shuffled by the seed."""
        shuffled = []
        for mutants in _all_mutants().values():
            random.Random(self._options.seed).shuffle(mutants)  # noqa: S311
            shuffled.append(mutants)
        for mutant in [mutant for turn in zip_longest(*shuffled) for mutant in turn if mutant]:
            name, before = mutant[0], self._results.get(mutant[0])
            if name.startswith(self._options.only) and (
                before == _SURVIVED if self._options.again else before is None
            ):
                if not self._options.again and len(self._results) >= self._options.count:
                    return
                yield mutant

    def _tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests that execute the mutant's code, within the time limit."""
        key = f"{mutant.file}::{mutant.scope}"
        if mutant.file.endswith(".sql") and not is_of_functions(mutant.file):
            functions = users_of_statement(PROJECT / mutant.file, mutant.scope)
        else:
            is_function = mutant.file.endswith(".py") and len(mutant.path) > 2
            functions = {key} if is_function else users_of(mutant.scope)
        words = words_of(f"{mutant.file} {mutant.scope} {mutant.change}")
        costs = {name: cost for name, cost in self._map.tests_of(functions).items() if name in self._items}
        chosen, seconds = [], 0.0
        for name in sorted(
            costs, key=lambda name: -self._likeness.of(name, words) / math.sqrt(1 + costs[name])
        ):
            if seconds + costs[name] <= self._options.seconds:
                chosen.append(name)
                seconds += costs[name]
        return chosen

    def _try(self, mutant: Mutant, tests: list[str]) -> str:
        """Return the outcome of a mutant."""
        outcome = self._fork(partial(self._judge, mutant, tests), seconds=30 + 3 * self._options.seconds)
        if is_of_functions(mutant.file):
            _replace_functions(mutant.file)
        connections.close_all()
        return outcome

    def _judge(self, mutant: Mutant | None, tests: list[str]) -> None:
        _be_silent()
        try:
            fits = mutant is None or _put_in(mutant)
        except Exception:  # noqa: BLE001 - PostgreSQL or Python rejects the mutant
            fits = False
        if not fits:
            os._exit(3)
        if any(_fails(self._items[name]) for name in tests):
            os._exit(1)

    def _passes(self, name: str) -> Callable[[], bool]:
        return lambda: not _fails(self._items[name])

    def _fork(self, work: Callable[[], None], *, seconds: float) -> str:
        """Run the work in a child process; return the meaning of its exit status; kill it on timeout."""
        child = os.fork()
        if child == 0:
            _become_child(work)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return _STATUSES.get(os.waitstatus_to_exitcode(status), _KILLED)
            time.sleep(0.05)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        _clean_up()
        return _ENDLESS

    def _leave_no_connection(self) -> None:
        """Close the connections that children would share with this process."""
        connections.close_all()
        # isinstance() would evaluate lazy objects, some of which fail.
        for pool in [thing for thing in gc.get_objects() if issubclass(type(thing), urllib3.PoolManager)]:
            pool.clear()


def _become_child(work: Callable[[], None]) -> None:
    os.setsid()
    random.seed()
    try:
        work()
    except BaseException:  # noqa: BLE001 - a child ends here, whatever happens
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _be_silent() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)


def _fails(item: pytest.Item) -> bool:
    """Run a test; keep the fixtures of the session."""
    kept: Any = item.session
    return any(report.failed for report in runtestprotocol(item, nextitem=kept, log=False))


def _clean_up() -> None:
    """Reset database and chain after a child was killed during a test."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT first_rows.restore()")
    rpc = Rpc(settings.CHAIN_RPC_URLS[0])
    rpc.call("evm_setAutomine", True)
    rpc.call("anvil_dropAllTransactions")


def _all_mutants() -> dict[str, list[tuple[str, Mutant]]]:
    """Return the mutants of each area, by names without line numbers."""
    mutants: dict[str, list[tuple[str, Mutant]]] = {}
    for area, patterns in AREAS.items():
        files = sorted(
            path for pattern in patterns for path in PROJECT.glob(pattern) if path.name != "__init__.py"
        )
        seen: Counter[str] = Counter()
        mutants[area] = []
        for mutant in [item for path in files for item in _mutants_of(path)]:
            name = f"{mutant.file} {mutant.scope}: {mutant.change}"
            seen[name] += 1
            mutants[area].append((name if seen[name] == 1 else f"{name} ({seen[name]})", mutant))
    return mutants


def _table(results: dict[str, str]) -> str:
    """Return the results by area and in total as a Markdown table; a timeout counts as a failed test."""
    areas = {area: [name for name, _ in mutants] for area, mutants in _all_mutants().items()}
    areas["all"] = [name for names in areas.values() for name in names]
    lines = ["| area | mutants | a test fails | no difference | no test failed |", "|---|---|---|---|---|"]
    for area, names in areas.items():
        count = Counter(results[name].partition(":")[0] for name in names if name in results)
        figures = (count.total(), count[_KILLED] + count[_ENDLESS], count[_EQUIVALENT], count[_SURVIVED])
        lines.append(f"| {area} | {' | '.join(map(str, figures))} |")
    return "\n".join(lines)


def _mutants_of(path: Path) -> list[Mutant]:
    if path.suffix == ".py":
        return mutants_of(path)
    return _of_functions(path) if is_of_functions(path.name) else _of_statements(path)


def _of_statements(path: Path) -> list[Mutant]:
    """Return the mutants of a file of statements, which have their values from the module."""
    return [
        Mutant(str(path.relative_to(PROJECT)), line + mutant.line, name, mutant.change, mutant.text, ())
        for name, line, _ in statements_of(path)
        for mutant in mutants_of_sql(getattr(_statements(path), name))
    ]


def _statements(path: Path) -> Any:
    """Return the class that has the statements of a file."""
    module = vars(import_module(".".join(path.relative_to(PROJECT).with_suffix("").parts)))
    return module.get("_Sql") or module["Sql"]


def _put_in(mutant: Mutant) -> bool:
    if mutant.file.endswith(".py"):
        return put_in(mutant)
    if is_of_functions(mutant.file):
        return _put_in_database(mutant)
    setattr(_statements(PROJECT / mutant.file), mutant.scope, mutant.other)
    return True


def _of_functions(path: Path) -> list[Mutant]:
    """Return the mutants of a file of SQL functions; statuses come from the constant in the app's models."""
    file, text, made = str(path.relative_to(PROJECT)), _functions_of(path.parent.name), []
    for name, body in sql_functions(text):
        line = text.count("\n", 0, text.index(body))
        made += [
            Mutant(file, line + mutant.line, name, mutant.change, mutant.text, ())
            for mutant in mutants_of_sql(body)
        ]
    return made


def _functions_of(app: str) -> str:
    return str(import_module(f"{app}.models").FUNCTIONS)


def _put_in_database(mutant: Mutant) -> bool:
    _execute_as_owner(str(mutant.other))
    connections.close_all()
    return True


def _replace_functions(file: str) -> None:
    _execute_as_owner(_functions_of(file.partition("/")[0]))


def _execute_as_owner(functions: str) -> None:
    """Use the owner's role; the application's role, which the tests use, may not replace functions."""
    database = connection.settings_dict
    with psycopg.connect(
        host=database["HOST"], port=database["PORT"] or None, dbname=database["NAME"], user=_OWNER
    ) as owner:
        owner.execute(functions.encode())
