"""
`python -m lab upgrade-rehearsal`: a new version under load, step by step, and what the callers notice of it.

The old processes are those of another commit, which has made the database too. Without one they are of this commit, on
the tables of the newest release, and migrations of each kind run while they serve: each is interrupted once, then
repeated. `migrate` runs, and each process is replaced by a new one: web processes in turn, taken out of the balancer
first. Every answer is counted.
"""

import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from devstack.console import echo, step
from devstack.ports import free_port
from devstack.processes import Web
from devstack.services.server import wait_until
from devstack.services.stack import Services, start_services
from lab.bench.stack import Checkout, checkout_of
from lab.chaos.proxies import Loop
from lab.chaos.visits import Responses, Visits, counted
from lab.rehearsals import versions
from lab.rehearsals.balancer import Balancer
from lab.rehearsals.interruptions import IN_THE_WAY, SETTINGS, interrupt
from lab.rehearsals.stack import BLOCK_SECONDS, Rehearsal

_LOCK_SECONDS, _START_SECONDS = 1, 180
# PostgreSQL logs waits for a lock longer than this.
_REPORTED_MILLISECONDS = 50
_SETTINGS = ("log_lock_waits=on", f"deadlock_timeout={_REPORTED_MILLISECONDS}ms")
_WAIT = re.compile(r"process \d+ acquired (\w+) on .* after ([\d.]+) ms")
# Statuses after which clients retry (docs/clients.md); any other error is a failed request.
_REPEATED = {429, 503}


@dataclass(frozen=True)
class Options:
    """Seconds of load before the upgrade, after it, and between its steps."""

    seconds: float
    # The commit from which the service is upgraded, and a virtual environment with its packages.
    commit: str | None = None
    environment: Path | None = None


def run(options: Options) -> int:
    """Run the upgrade and print its results; return 1 if a check fails."""
    with ExitStack() as running:
        checkout = None
        if options.commit:
            checkout = running.enter_context(checkout_of(options.commit, environment=options.environment))
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="upgrade-")))
        services = running.enter_context(
            start_services(folder, block_time=BLOCK_SECONDS, postgres_settings=_SETTINGS)
        )
        return _rehearse(services, options, checkout)


def _rehearse(services: Services, options: Options, checkout: Checkout | None) -> int:
    loop = Loop()
    balancer = Balancer(loop)
    rehearsal = Rehearsal.prepare(
        services, port=balancer.port, checkout=checkout, from_release=checkout is None
    )
    webs = [_NamedWeb(rehearsal, name) for name in ("web-1", "web-2")]
    workers = rehearsal.workers()
    if checkout is not None:
        for process in (*webs, *workers):
            versions.run_from(process, checkout, rehearsal.prepared.environment)
    results: Responses = Counter()
    since = time.time()
    stages = Stages(results)
    with (
        rehearsal.running([*webs, *workers]),
        ExitStack() as replaced,
        counted(balancer.port, results),
    ):
        for web in webs:
            balancer.put_in(web.port)
        traffic = rehearsal.traffic()
        visits = Visits(traffic.wallets, lambda _: None)
        with traffic.running(), visits.running():
            time.sleep(options.seconds)
            before = Counter(results)
            wrong = [] if checkout else _migrate_interrupted(services, rehearsal, stages, options.seconds)
            with step("migrate"), stages.of("migrate"):
                in_flight = _in_flight(services)
                status, printed = rehearsal.manage("migrate", owns=True)
            # From here on, processes of the old version call functions of the new one.
            time.sleep(options.seconds)
            for web in webs:
                with step(f"replacing {web.log_path.stem}"), stages.of(web.log_path.stem):
                    _replace_web(balancer, web)
                time.sleep(options.seconds)
            for old, new in zip(workers, rehearsal.workers("new"), strict=True):
                with step(f"replacing {old.name}"), stages.of(old.name):
                    replaced.enter_context(rehearsal.running([new]))
                    old.stop(patience=_START_SECONDS)
            time.sleep(options.seconds)
        rehearsal.settle()
        result = rehearsal.result(traffic.calls, since=since)
        drift = _edit_by_hand(services, rehearsal)
    balancer.close()
    loop.stop()
    wrong += result.wrong + [f"{len(traffic.unanswered)} calls have no answer"] * bool(traffic.unanswered)
    wrong += [f"migrate exits {status}: {printed[-500:]}"] if status else []
    wrong += drift
    echo(f"{len(traffic.calls)} calls in all.")
    echo(f"In flight as `migrate` began: {in_flight}.")
    echo(f"Responses with a retry, by step: {stages}.")
    return _judge(services, before, Counter(results) - before, wrong)


def _migrate_interrupted(
    services: Services, rehearsal: Rehearsal, stages: "Stages", seconds: float
) -> list[str]:
    """Run each rehearsed migration while the old code runs, interrupted once and then repeated; return what failed."""
    wrong = []
    for name, statement in IN_THE_WAY.items():
        command = ("migrate", "relay", name)
        with step(f"{name}, interrupted and repeated"), stages.of(name), ThreadPoolExecutor() as running:
            with psycopg.connect(services.database_url) as in_the_way:
                in_the_way.execute(statement.encode())
                outcome = running.submit(rehearsal.manage, *command, owns=True, **SETTINGS)
                interrupt(services.database_url, is_over=outcome.done)
                interrupted, _ = outcome.result()
            status, printed = rehearsal.manage(*command, owns=True, **SETTINGS)
        wrong += [f"{name} was not interrupted"] * (not interrupted)
        wrong += [f"{name} exits {status}: {printed[-500:]}"] * bool(status)
        time.sleep(seconds)
    return wrong


def _in_flight(services: Services) -> str:
    """Return what was open: calls in progress, their holds, and quotes that no call has used."""
    with psycopg.connect(services.database_url) as connection:
        rows = connection.execute(
            "SELECT (SELECT count(*) FROM relay_relaytransaction WHERE settled_at IS NULL),"
            " (SELECT count(*) FROM credits_hold WHERE status = 'HELD'),"
            " (SELECT count(*) FROM relay_quote WHERE used_at IS NULL AND expires_at > now())"
        ).fetchall()
    return "{} calls, {} holds, {} quotes".format(*rows[0])


def _edit_by_hand(services: Services, rehearsal: Rehearsal) -> list[str]:
    """Return the faults of the check of functions: it must pass, and fail once one was edited."""
    check = ("check", "--database", "default")
    status, printed = rehearsal.manage(*check, owns=True)
    wrong = [f"check exits {status} after migrate: {printed[-500:]}"] if status else []
    with psycopg.connect(services.database_url) as connection:
        connection.execute("ALTER FUNCTION relay_take_slots SECURITY DEFINER")
    status, printed = rehearsal.manage(*check, owns=True)
    found = [line for line in printed.splitlines() if "gateway.E001" in line]
    echo(f"check after an edit by hand exits {status}: {' '.join(found)}")
    return wrong + ([] if status and found else ["check does not see an edit by hand"])


class Stages:
    """Counts by step the responses after which clients retry."""

    def __init__(self, answers: Responses) -> None:
        self._answers, self._counts = answers, dict[str, int]()

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Count during the block."""
        before = self._repeated()
        yield
        self._counts[name] = self._repeated() - before

    def __str__(self) -> str:
        return ", ".join(f"{name} {count}" for name, count in self._counts.items())

    def _repeated(self) -> int:
        return sum(count for (_, status), count in list(self._answers.items()) if status in _REPEATED)


class _NamedWeb(Web):
    """One of several web servers, with its own log."""

    def __init__(self, rehearsal: Rehearsal, name: str) -> None:
        self.port = free_port()
        directory, environment = rehearsal.prepared.directory / "log", rehearsal.prepared.environment
        self.own_environment = environment
        super().__init__(directory, environment, port=self.port, processes=1)
        self.log_path = directory / f"{name}.log"


def _replace_web(balancer: Balancer, web: _NamedWeb) -> None:
    balancer.take_out(web.port)
    wait_until(lambda: balancer.is_idle(web.port), f"{web.name} does not finish its requests")
    _replace(web)
    balancer.put_in(web.port)


def _replace(server: _NamedWeb) -> None:
    server.stop(patience=_START_SECONDS)
    versions.run_from_here(server, server.own_environment)
    server.start()
    server.wait(_START_SECONDS)


def _judge(services: Services, before: Responses, answers: Responses, wrong: Sequence[str]) -> int:
    """Print the responses before and after the first step; return 1 if a check fails."""
    waits = _lock_waits(services.postgres.log_path)
    longest = max(waits.values(), default=0.0)
    failed = {key: count for key, count in answers.items() if key[1] not in _REPEATED}
    failed = {key: count for key, count in failed.items() if key[1] == 0 or key[1] >= 500}
    errors = [
        *wrong,
        *(f"{count} × {status or 'no response'} from {path}" for (path, status), count in failed.items()),
        *([f"a lock was waited for {longest:.0f} ms"] if longest > 1000 * _LOCK_SECONDS else []),
    ]
    echo(f"Before it: {_answered(before)}.\nFrom its first step on: {_answered(answers)}.")
    echo(f"Waits for locks of more than {_REPORTED_MILLISECONDS} ms: {_waited(waits)}.")
    echo("\n".join(f"✗ {one}" for one in errors) or "✓ no failed request, and everything reconciles")
    return int(bool(errors))


def _answered(answers: Responses) -> str:
    """Return the number of requests, of failures, and the responses after which clients retry."""
    repeated = [
        f"{count} × {status} from {path}"
        for (path, status), count in answers.most_common()
        if status in _REPEATED
    ]
    failed = sum(count for (_, status), count in answers.items() if status == 0 or status >= 500)
    failed -= sum(count for (_, status), count in answers.items() if status in _REPEATED and status >= 500)
    return f"{answers.total()} requests, {failed} failed, retried: {', '.join(repeated) or 'none'}"


def _lock_waits(log: Path) -> dict[str, float]:
    """Return the longest reported wait in milliseconds by the kind of lock."""
    waits: dict[str, float] = {}
    for kind, milliseconds in _WAIT.findall(log.read_text(errors="replace")):
        waits[kind] = max(waits.get(kind, 0.0), float(milliseconds))
    return waits


def _waited(waits: dict[str, float]) -> str:
    return ", ".join(f"{kind} at most {wait:.0f} ms" for kind, wait in sorted(waits.items())) or "none"
