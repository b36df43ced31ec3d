"""The stack of a rehearsal, without proxies, and its wallets."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from devstack import releases
from devstack.console import step
from devstack.django_process import process_environment
from devstack.environment import CREDIT_WEI, overriding, owner_environment
from devstack.files import PROJECT
from devstack.ports import free_port
from devstack.preparation import Plan, Prepared, prepare
from devstack.processes import Beat, DefaultWorker, GatewayProcess, RelayWorker
from devstack.services.server import Server, ServerFailed, stop_all
from devstack.services.stack import Services
from devstack.stack_file import described
from devstack.world.profiles import ProfilePlan
from lab.bench.stack import Checkout
from lab.chaos.traffic import Call, Traffic
from lab.chaos.verifier import Result, Verifier, drained
from lab.rehearsals import versions

BLOCK_SECONDS = 1
_PROFILES, _CREDITS, _RELAYERS = 16, 10**9, 6
_SETTINGS = {"AUTH_ACCESS_SECONDS": "86400"}
_START_SECONDS, _DRAIN_SECONDS = 180, 120


class Rehearsal:
    """Running servers, and the service's processes that are started and stopped on them."""

    def __init__(self, services: Services, prepared: Prepared) -> None:
        self.services, self.prepared = services, prepared
        self.verifier = Verifier(services.rpc, credit_wei=CREDIT_WEI)

    @classmethod
    def prepare(
        cls,
        services: Services,
        *,
        port: int | None = None,
        checkout: Checkout | None = None,
        from_release: bool = False,
    ) -> "Rehearsal":
        """
        Make profiles with credits, and the settings of a service that is reached at this port.

        The tables are those of another checkout if there is one, or of the newest release.
        """
        plan = Plan(
            [ProfilePlan() for _ in range(_PROFILES)],
            credits=_CREDITS,
            relayers=_RELAYERS,
            settings=_SETTINGS,
        )
        directory = services.postgres.directory.parent
        prepared = prepare(services, directory, plan, port=port or free_port(), block_time=BLOCK_SECONDS)
        with step("tables, profiles with credits"):
            if checkout or from_release:
                services.postgres.drop_database()
                services.postgres.ensure_database(template="template1")
            if checkout:
                versions.seed(prepared, checkout)
            else:
                if from_release:
                    releases.restore(releases.NEW, services.database_url)
                prepared.seed()
        return cls(services, prepared)

    def find_database(self) -> None:
        """Use the server's current address for processes started from now on."""
        settings = self.prepared.settings | {"DATABASE_URL": self.services.application_database_url}
        self.prepared = replace(
            self.prepared, settings=settings, owner_settings=owner_environment(self.services)
        )

    def workers(self, generation: str = "") -> list[GatewayProcess]:
        """Return both workers and beat, not started yet; each generation has its own logs."""
        kinds = (RelayWorker, DefaultWorker, Beat)
        logs = self.prepared.directory / "log" / generation
        return [kind(logs, self.prepared.environment) for kind in kinds]

    @contextmanager
    def running(self, processes: Sequence[Server]) -> Iterator[None]:
        """Run these processes during the block."""
        try:
            with step(f"starting {', '.join(process.name for process in processes)}"):
                for process in processes:
                    process.start()
                for process in processes:
                    process.wait(_START_SECONDS)
            yield
        finally:
            stop_all(processes)

    def traffic(self) -> Traffic:
        """Return the wallets, signed in."""
        traffic = Traffic(
            self.prepared.settings["PUBLIC_URL"], self.services.rpc, described(self.prepared.profiles)
        )
        traffic.sign_in()
        return traffic

    def manage(self, *arguments: str, owns: bool = False, **overridden: object) -> tuple[int, str]:
        """Run a management command with these settings; return its exit status and what it printed."""
        settings = (
            self.prepared.settings | (self.prepared.owner_settings if owns else {}) | overriding(**overridden)
        )
        command = [sys.executable, "manage.py", *arguments]
        outcome = subprocess.run(
            command,
            env=process_environment(settings | {"LOG_LEVEL": "CRITICAL"}),
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
        )
        return outcome.returncode, outcome.stdout + outcome.stderr

    def settle(self) -> None:
        """Wait until no call is in progress."""
        with step("settling what is in progress"):
            if not drained(self.services.database_url, seconds=_DRAIN_SECONDS):
                raise ServerFailed(f"calls are not settled after {_DRAIN_SECONDS} s")

    def result(self, calls: Sequence[Call], *, since: float | None = None) -> Result:
        """Verify calls and the whole ledger against chain and rows."""
        acknowledged = [call.as_acknowledged() for call in calls]
        return self.verifier.verify(
            self.services.database_url, acknowledged, since=time.time() if since is None else since
        )
