"""`python -m devstack chaos`: one fault after the other, the least tried first, until the time is up."""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg

from devstack.chaos.faults import FAULTS, Fault, NeverCame
from devstack.chaos.results import Results, Row, table
from devstack.chaos.stack import Stack, running_stack
from devstack.chaos.traffic import Health, Traffic
from devstack.chaos.verifier import Verifier
from devstack.console import complain, say
from devstack.environment import CREDIT_WEI

_WARM_UP_SECONDS, _AFTER_SECONDS = 1.5, 1.0
_DRAIN_SECONDS, _POLL_SECONDS = 120, 0.1
_REPEATED = 5
_IN_PROGRESS = "SELECT count(*) FROM relay_relaytransaction WHERE settled_at IS NULL"


@dataclass(frozen=True)
class Options:
    """What to try: the faults whose names begin with one of `faults`, for so many minutes, up to so many times each."""

    faults: Sequence[str]
    minutes: float
    times: int
    results: Path


def run(options: Options) -> int:
    """Try the faults; return 1 if anything was wrong."""
    chosen = {name: fault for name, fault in FAULTS.items() if name.startswith(tuple(options.faults))}
    if not chosen:
        raise RuntimeError(
            f"No fault begins with {', '.join(options.faults)}; there are {', '.join(FAULTS)}."
        )
    results = Results(options.results)
    for nodes in sorted({fault.nodes for fault in chosen.values()}):
        group = {name: fault for name, fault in chosen.items() if fault.nodes == nodes}
        _try_all(group, options, results, minutes=options.minutes * len(group) / len(chosen), nodes=nodes)
    rows = [(name, results.rows[name]) for name in chosen if name in results.rows]
    say(table(rows))
    return int(len(rows) < len(chosen) or not all(row.is_clean for _, row in rows))


def _try_all(
    faults: dict[str, Fault], options: Options, results: Results, *, minutes: float, nodes: int
) -> None:
    ends_at = time.monotonic() + minutes * 60
    left = dict(faults)
    with (
        tempfile.TemporaryDirectory(prefix="chaos-") as folder,
        running_stack(Path(folder), nodes=nodes) as stack,
    ):
        arena = Arena(stack)
        while left and time.monotonic() < ends_at:
            name = min(left, key=results.times)
            if results.times(name) >= options.times:
                break
            try:
                trial = arena.try_out(left[name])
            except NeverCame as error:
                complain(f"  ✗ {error}")
                del left[name]
                continue
            results.add(name, trial)
            say(_told(name, trial))


class Arena:
    """A running stack with its wallets, in which one trial follows the other."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._traffic = Traffic(stack.web.url, stack.services.rpc, stack.profiles)
        self._health = Health(stack.web.url)
        self._verifier = Verifier(stack.services.rpc, credit_wei=CREDIT_WEI)
        self._traffic.sign_in()

    def try_out(self, fault: Fault) -> Row:
        """Cause a fault under load; wait until all has recovered; return what the verifier says."""
        since = time.time()
        with self._health.watched():
            with self._traffic.running(validity_seconds=fault.validity_seconds):
                time.sleep(_WARM_UP_SECONDS)
                with fault.caused(self._stack):
                    in_flight = self._in_progress() + len(self._traffic.unanswered)
                ended = time.monotonic()
                time.sleep(_AFTER_SECONDS)
            drained = self._drain()
            recovery = time.monotonic() - ended
            self._stack.wait()
        calls = list(self._traffic.calls)
        self._traffic.repeat([call for call in calls if call.transaction_hash][:_REPEATED])
        verdict = self._verifier.verify(
            self._stack.services.database_url, [call.as_acknowledged() for call in calls], since=since
        )
        wrong = verdict.wrong + ([] if drained else [f"not settled after {_DRAIN_SECONDS} s"])
        wrong += [f"two hashes for one call: {call.answers}" for call in calls if len(call.answers) > 1]
        return Row(
            times=1,
            in_flight=in_flight,
            calls=verdict.calls,
            lost=len(verdict.lost),
            doubled=len(verdict.doubled),
            charged_wrongly=len(verdict.charged_wrongly),
            ledger_difference=verdict.ledger_difference,
            nonce_gaps=len(verdict.nonce_gaps),
            longest_hold_seconds=round(verdict.longest_hold_seconds, 1),
            recoveries=[round(recovery, 1)],
            healthz_seconds=round(self._health.longest, 3),
            wrong=wrong,
        )

    def _drain(self) -> bool:
        """Return whether every call was settled in time."""
        deadline = time.monotonic() + _DRAIN_SECONDS
        while self._in_progress():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def _in_progress(self) -> int:
        try:
            with psycopg.connect(self._stack.services.database_url, autocommit=True) as connection:
                row = connection.execute(_IN_PROGRESS).fetchone()
        except psycopg.OperationalError:
            return 0
        return int(row[0]) if row else 0


def _told(name: str, trial: Row) -> str:
    outcome = "✓" if trial.is_clean else "✗"
    numbers = f"{trial.in_flight} in flight, {trial.calls} calls, settled after {trial.recoveries[-1]:.1f} s"
    lines = [f"  {outcome} {name}: {numbers}, /healthz {trial.healthz_seconds * 1e3:.0f} ms", *trial.wrong]
    return "\n      ".join(lines)
