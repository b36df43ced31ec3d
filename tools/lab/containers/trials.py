"""The steps with their seconds and losses: kills, an upgrade, a roll-back, a restore, commands."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from devstack.console import echo
from devstack.rpc import Rpc
from lab.chaos.traffic import Traffic
from lab.chaos.verifier import Verifier, drained
from lab.containers.site import RUNBOOK, Site

# Of `.env`, so that a clerk's limit of one day pays for every call of a run.
CREDIT_WEI = 10**15
_IDLE_SECONDS, _AROUND_SECONDS, _DRAIN_SECONDS = 60.0, 6.0, 300.0
KILLED = ("redis", "postgres", "signer", "web", "worker-relay", "worker-default", "beat", "eraser", "admin")


@dataclass
class Row:
    """A step: how long it took, the calls meanwhile, the longest wait for a response, and what was wrong."""

    name: str
    seconds: float
    calls: int = 0
    longest: float = 0.0
    wrong: list[str] = field(default_factory=list)

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of the printed table."""
        calls = f"{self.calls}" if self.calls else ""
        longest = f"{self.longest:.1f}" if self.calls else ""
        return self.name, f"{self.seconds:.0f}", calls, longest, "; ".join(self.wrong) or "0"


class Trials:
    """The steps on a site whose service runs, with calls of wallets that are signed in."""

    def __init__(self, site: Site, traffic: Traffic, rpc: Rpc) -> None:
        self.site, self.traffic = site, traffic
        self._verifier = Verifier(rpc, credit_wei=CREDIT_WEI)
        self.rows: list[Row] = []
        # By container: the share of a processor, and bytes of memory.
        self.idle_usage: dict[str, tuple[float, int]] = {}

    def idle(self) -> None:
        """Measure each container while nothing is asked of it, with its health checks."""
        running, engine = self.site.running(), self.site.engine
        before = {name: engine.usage(found) for name, found in running.items()}
        time.sleep(_IDLE_SECONDS)
        for name, found in running.items():
            after = engine.usage(found)
            share = (after.cpu_seconds - before[name].cpu_seconds) / _IDLE_SECONDS
            self.idle_usage[name] = share, after.memory_bytes

    @contextmanager
    def measured(self, name: str) -> Iterator[None]:
        """Time a step under a trickle of calls; then settle them all and verify each."""
        row = Row(name, 0.0)
        since = time.time()
        with self.traffic.running(patience=_DRAIN_SECONDS):
            time.sleep(_AROUND_SECONDS)
            began = time.monotonic()
            try:
                yield
            except RuntimeError as error:
                row.wrong.append(str(error))
            row.seconds = time.monotonic() - began
            time.sleep(_AROUND_SECONDS)
        self._judge(row, since)
        self.rows.append(row)
        echo(f"  {' | '.join(row.cells)}")

    def _judge(self, row: Row, since: float) -> None:
        calls = self.traffic.calls
        row.calls = len(calls)
        row.longest = max(
            (call.answered_at - call.began_at for call in calls if call.answered_at), default=0.0
        )
        row.wrong += [f"call without an answer: {call.nonce}" for call in self.traffic.unanswered]
        row.wrong += sorted({call.refusal for call in calls if call.refusal})
        url = self.site.database_url()
        if not drained(url, seconds=_DRAIN_SECONDS):
            row.wrong.append(f"not settled after {_DRAIN_SECONDS:.0f} s")
        acknowledged = [call.as_acknowledged() for call in calls]
        row.wrong += [
            one
            for one in self._verifier.verify(url, acknowledged, since=since).wrong
            if "a hold was open" not in one
        ]

    def kill(self, service: str) -> None:
        """Kill a container's processes, as the kernel does when memory runs out; wait until it is healthy again."""
        with self.measured(f"kill {service}"):
            container = self.site.container(service)
            os.kill(self.site.engine.inspect(container)["State"]["Pid"], signal.SIGKILL)
            time.sleep(1)
            self.site.wait_healthy(service)

    def replace(self, name: str, version: str, *, migrates: bool) -> None:
        """Go to a version by the documented steps; the image of the version is built before."""
        with self.measured(name):
            self.site.shell(f"sed -i '/^GATEWAY_VERSION=/d' .env && echo GATEWAY_VERSION={version} >> .env")
            if migrates:
                self.site.shell("docker compose run --rm migrate")
            self.site.documented(RUNBOOK, "## Upgrade")
            self.site.shell("docker compose up -d --no-deps --wait signer")

    def restore(self) -> None:
        """Archive, take a base backup, lose the data, and follow the runbook."""
        archive, override = "deploy/compose.archive.yaml", "compose.override.yaml"
        names = {archive: f"{archive}:{override}"} if (self.site.folder / override).exists() else {}
        self.site.documented(RUNBOOK, "## Back up", 1, names=names)
        with self.measured("calls after the base backup"):
            pass
        today = datetime.now(UTC).strftime("%F")
        with self.measured("restore"):
            self.site.documented(RUNBOOK, "### Restore", 0, names={"base-2026-11-23": f"base-{today}"})
            # Payments are not set up here.
            names = {"docker compose exec web python manage.py reconcile_payments --repair": "true"}
            self.site.documented(RUNBOOK, "### Restore", 1, names=names)
            for service in ("web", "worker-relay"):
                self.site.wait_healthy(service)

    def commands(self) -> None:
        """Run the commands that other processes than web are documented for, each where it belongs."""
        every: list[tuple[str, str]] = [
            *(
                (service, "check --deploy --database default")
                for service in ("web", "admin", "beat", "eraser")
            ),
            *(
                (service, "check --deploy --database default")
                for service in ("worker-relay", "worker-default")
            ),
            ("worker-default", "close_ledger_roots"),
            ("worker-default", "audit_ledger"),
            ("web", "audit_ledger"),
            ("worker-relay", "sync_relayers"),
            ("eraser", "erase_deleted_accounts"),
            ("web", "reconcile_credits"),
            ("web", "reconcile_relay"),
        ]
        began, wrong = time.monotonic(), []
        for service, command in every:
            status, printed = self.site.manage(command, service=service)
            if status:
                wrong.append(f"{command} in {service}: exit {status}: {printed.strip()[-200:]}")
        self.rows.append(Row(f"{len(every)} commands", time.monotonic() - began, wrong=wrong))


def timed(rows: list[Row], name: str, work: Callable[[], object]) -> None:
    """Do one of the first steps and keep its seconds."""
    began = time.monotonic()
    work()
    rows.append(Row(name, time.monotonic() - began))
    echo(f"  ✓ {name} ({rows[-1].seconds:.0f} s)")
