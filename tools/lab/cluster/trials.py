"""`python -m lab cluster-test`: one fault after the other, the least tried first, until the time is over."""

import random
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import psycopg
import urllib3

from devstack.console import echo
from devstack.environment import CREDIT_WEI
from lab.chaos.journals import compare_journal, read_journal
from lab.chaos.probes import sign_in_probe
from lab.chaos.stack import Keeper
from lab.chaos.traffic import Call, Traffic
from lab.chaos.verifier import Verifier, drained
from lab.cluster import settings
from lab.cluster.faults import APART, FAULTS, Fault, Scene
from lab.cluster.results import Results, Trial
from lab.cluster.stack import Cluster, running_cluster
from lab.cluster.state import NotWhole, wait_until_whole

_WARM_UP_SECONDS, _AFTER_SECONDS, _DRAIN_SECONDS = 5, 8, 180
_IDLE_SECONDS = 90
_CLIENTS, _CLIENTS_APART, _PROFILES_APART = 12, 4, 4
_AGAIN_SECONDS = 0.2
_MOST_SHOWN = 5
# Metrics of the service at /metrics.
_SAMPLE = re.compile(r'^gateway_(\w+)\{(?:task|loop)="([^"]+)"\} (\S+)$', re.MULTILINE)
_PERIOD = "periodic_task_period_seconds"
_SUCCEEDED = ("periodic_task_succeeded_timestamp_seconds", "relay_loop_succeeded_timestamp_seconds")
_LONGEST_PERIOD, _POLL_SECONDS = 10, 0.5
_ASYNCHRONOUS = "asynchronous standby: "
# Account nonces of a relayer on which there are attempts of more than one call.
_REUSED = """
SELECT count(*) FROM (
    SELECT FROM relay_attempt GROUP BY relayer_id, account_nonce HAVING count(DISTINCT relay_transaction_id) > 1
) AS reused
"""


@dataclass(frozen=True)
class Options:
    """The faults to try by prefixes of their names, the minutes of the run, and the trials per fault."""

    faults: Sequence[str]
    minutes: float
    times: int
    results: Path
    directory: Path
    synchronous: bool = True


def run(options: Options) -> int:
    """Try the faults; return 1 if there was a difference or a fault was never tried."""
    chosen = [name for name in FAULTS if name.startswith(tuple(options.faults))]
    if not chosen:
        raise RuntimeError(
            f"No fault begins with {', '.join(options.faults)}; choose from {', '.join(FAULTS)}."
        )
    results = Results(options.results)
    ends_at = time.monotonic() + options.minutes * 60
    while time.monotonic() < ends_at and _left(chosen, results, options):
        _try_on_one_cluster(chosen, results, options, ends_at=ends_at)
    titles = [_title(name, options) for name in chosen]
    echo(results.table(titles))
    return int(any(trial.wrong for title in titles for trial in results.trials.get(title, [])))


def _title(fault: str, options: Options) -> str:
    return fault if options.synchronous else _ASYNCHRONOUS + fault


def _left(chosen: Sequence[str], results: Results, options: Options) -> list[str]:
    """Return the faults that need more trials, the least tried first, equal ones in random order."""
    left = [name for name in chosen if results.times(_title(name, options)) < options.times]
    random.shuffle(left)
    return sorted(left, key=lambda name: results.times(_title(name, options)))


def _try_on_one_cluster(chosen: Sequence[str], results: Results, options: Options, *, ends_at: float) -> None:
    """Try faults until one has done damage, which the verifier would find after later faults again."""
    with (
        running_cluster(options.directory, synchronous=options.synchronous) as cluster,
        _kept(cluster) as keeper,
    ):
        scene = Scene(cluster, keeper)
        # On a busy machine PostgreSQL may have changed hosts while the service started.
        wait_until_whole(cluster)
        arena = Arena(scene)
        while (left := _left(chosen, results, options)) and time.monotonic() < ends_at:
            name, began = left[0], time.monotonic()
            trial = arena.try_out(FAULTS[name])
            results.add(_title(name, options), trial)
            echo(f"  {'✗' if trial.wrong else '✓'} {name}: {trial.accepted} of {trial.calls} calls accepted")
            echo(
                f"    none for {trial.silence_seconds:.1f} s; settled after {trial.settled_seconds:.1f} s;"
                f" {time.monotonic() - began:.0f} s in all"
            )
            for line in trial.wrong[:_MOST_SHOWN]:
                echo(f"    {line}")
            if trial.wrong:
                return
        keeper.finish()
        arena.compare_journal()


@contextmanager
def _kept(cluster: Cluster) -> Iterator[Keeper]:
    keeper = Keeper(cluster.servers)
    keeper.start()
    try:
        yield keeper
    finally:
        keeper.finish()


class Arena:
    """A running cluster and its wallets, for one trial after the other."""

    def __init__(self, scene: Scene) -> None:
        self._scene, self._cluster = scene, scene.cluster
        rpc, profiles = self._cluster.outside.world.deployer.rpc, self._cluster.profiles
        web = f"http://{APART[0].address}:{settings.WEB_PORT}"
        self._traffic = Traffic(self._cluster.base_url, rpc, profiles[_PROFILES_APART:], clients=_CLIENTS)
        self._apart = Traffic(
            self._cluster.base_url, rpc, profiles[:_PROFILES_APART], clients=_CLIENTS_APART, calls_url=web
        )
        for traffic in (self._traffic, self._apart):
            traffic.sign_in()
        self._sign_in = sign_in_probe(
            self._cluster.base_url, profiles[-1]["profile_address"], again_seconds=_AGAIN_SECONDS
        )
        self._verifier = Verifier(rpc, credit_wei=CREDIT_WEI)

    def try_out(self, fault: Fault) -> Trial:
        """Cause a fault under load, wait for recovery, and return the verifier's result."""
        trial = Trial(datetime.now(UTC).isoformat(timespec="seconds"))
        since, began = time.time(), time.monotonic()
        with ExitStack() as running:
            running.enter_context(self._sign_in.running())
            # Stopping waits for responses to the last calls, so isolated clients stop last.
            if fault.cuts_off:
                running.enter_context(self._apart.running())
            running.enter_context(self._traffic.running())
            time.sleep(_WARM_UP_SECONDS)
            try:
                fault.cause(self._scene)
            except NotWhole as error:
                trial.wrong.append(str(error))
            over = time.monotonic()
            trial.workers_seconds, idle = idle_after(
                self._cluster.base_url,
                self._cluster.metrics_token,
                since=time.time(),
                patience_seconds=_IDLE_SECONDS,
            )
            time.sleep(max(0.0, over + _AFTER_SECONDS - time.monotonic()))
            ended = time.monotonic()
        trial.wrong += [f"idle {_IDLE_SECONDS} s after the fault: {', '.join(idle)}"] if idle else []
        calls = [*self._traffic.calls, *(self._apart.calls if fault.cuts_off else [])]
        trial.calls_per_second = round(len(calls) / (ended - began), 1)
        trial.silence_seconds = round(longest_silence(self._traffic.calls, began, ended), 1)
        trial.sign_in_seconds = round(self._sign_in.longest, 1)
        if not drained(self._cluster.outside.database_url, seconds=_DRAIN_SECONDS):
            trial.wrong.append(f"calls are not settled after {_DRAIN_SECONDS} s")
        trial.settled_seconds = round(time.monotonic() - over, 1)
        try:
            wait_until_whole(self._cluster)
        except NotWhole as error:
            trial.wrong.append(str(error))
        self._judge(calls, trial, since=since)
        return trial

    def _judge(self, calls: Sequence[Call], trial: Trial, *, since: float) -> None:
        database_url = self._cluster.outside.database_url
        result = self._verifier.verify(database_url, [call.as_acknowledged() for call in calls], since=since)
        unanswered = [call for call in calls if not call.is_answered]
        trial.calls, trial.accepted = len(calls), sum(bool(call.transaction_hash) for call in calls)
        trial.unanswered = len(unanswered)
        trial.lost, trial.doubled = len(result.lost), len(result.doubled)
        trial.charged_wrongly, trial.nonce_gaps = len(result.charged_wrongly), len(result.nonce_gaps)
        trial.ledger_difference, trial.nonces_reused = result.ledger_difference, _reused(database_url)
        trial.wrong += result.wrong
        trial.wrong += [f"{trial.nonces_reused} account nonces are reused"] if trial.nonces_reused else []
        trial.wrong += [f"{len(unanswered)} calls had no response for a minute"] if unanswered else []
        trial.wrong += [f"two hashes for one call: {call.answers}" for call in calls if len(call.answers) > 1]
        trial.wrong += [f"refused: {call.refusal}" for call in calls if call.refusal]

    def compare_journal(self) -> None:
        """
        Compare the signer's journal of this run with the chain; stops the signer.

        Raises:
            RuntimeError: they differ.
        """
        self._cluster.servers["signer"].stop()
        result = compare_journal(read_journal(self._cluster.journal), self._verifier.chain)
        echo(
            f"  journal of the signer: {result.account_nonces} account nonces, {result.signatures} signatures"
        )
        if result.wrong:
            raise RuntimeError("; ".join(result.wrong[:_MOST_SHOWN]))


def longest_silence(calls: Sequence[Call], began: float, ended: float) -> float:
    """Return the longest time without an accepted call, including start and end."""
    moments = [began, *sorted(call.answered_at for call in calls if call.transaction_hash), ended]
    return max(after - before for before, after in pairwise(moments))


def idle_after(
    base_url: str, token: str, *, since: float, patience_seconds: float
) -> tuple[float, list[str]]:
    """
    Wait until each loop of the relay worker, and each task with a period of ten seconds, has succeeded.

    Returns:
        The seconds from `since` (unix), and on timeout the names that have not succeeded.
    """
    idle = ["everybody"]
    while idle and time.time() < since + patience_seconds:
        time.sleep(_POLL_SECONDS)
        with suppress(urllib3.exceptions.HTTPError):
            response = urllib3.request(
                "GET",
                f"{base_url}/metrics",
                headers={"authorization": f"Bearer {token}"},
                timeout=5,
                retries=False,
            )
            if response.status == 200:
                idle = idle_since(response.data.decode(), since)
    return round(time.time() - since, 1), idle


def idle_since(exposition: str, since: float) -> list[str]:
    """Return the loops and short-period tasks that have not succeeded since then."""
    samples = {(metric, name): float(value) for metric, name, value in _SAMPLE.findall(exposition)}
    frequent = {
        name for (metric, name), value in samples.items() if metric == _PERIOD and value <= _LONGEST_PERIOD
    }
    loops = {name for metric, name in samples if metric.startswith("relay_loop")}
    at_work = {name for (metric, name), value in samples.items() if metric in _SUCCEEDED and value > since}
    return sorted((frequent | loops) - at_work)


def _reused(database_url: str) -> int:
    with psycopg.connect(database_url) as connection:
        row = connection.execute(_REUSED).fetchone()
    return int(row[0]) if row else 0
