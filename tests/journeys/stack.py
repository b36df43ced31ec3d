"""The whole service as processes of its own, and the levers that break and mend it."""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import psutil
import redis
from celery import Celery
from django.conf import settings

from devstack.environment import overriding
from devstack.files import PROJECT
from devstack.ports import free_port
from devstack.preparation import Plan, prepare
from devstack.processes import Beat, Web, Worker
from devstack.services.server import Server, stop_all
from devstack.services.stack import Services, start_services
from devstack.services.stripe_double import StripeDouble
from devstack.world.profiles import Profile, ProfilePlan
from tests.journeys.chain import BLOCK_SECONDS, Chain
from tests.journeys.people import Person, sign_in
from tests.journeys.records import Records
from tests.journeys.waiting import side_by_side, until

logger = logging.getLogger(__name__)

_CROWD = 132
# What one person may adjust alone; here a clerk empties accounts.
_LIMIT = "APPROVAL_CREDITS_PER_CLERK"
_START_SECONDS = 600
# What requests wait for that a test keeps waiting until it kills their process.
_STUCK_SECONDS = 150
# The timeout of a node; a journey waits for it where the node stalls.
_NODE_SECONDS = 15
# In one process: it takes longer to start than to compare.
_RECONCILE = """
from django.core.management import call_command
call_command("reconcile_credits")
call_command("reconcile_payments", "--minutes", "0")
"""


class FirstWorker(Worker):
    """A worker in which several tasks can be stuck at the same time."""

    concurrency: ClassVar[int] = 8


class SecondWorker(Worker):
    """A worker beside the first one, as another container would run it."""

    name: ClassVar[str] = "worker-2"


class SecondBeat(Beat):
    """A clock beside the first one, started by mistake."""

    name: ClassVar[str] = "beat-2"


@dataclass
class Stack:
    """The running service."""

    services: Services
    environment: dict[str, str]
    logs: Path
    web: Web
    worker: Worker
    beat: Beat
    unused_profiles: list[Profile]
    networks: dict[str, Any]

    @property
    def chain(self) -> Chain:
        """The chain, to read and to change."""
        return Chain(self.services.rpc)

    @property
    def records(self) -> Records:
        """The rows."""
        return Records(self.services.database_url)

    @property
    def redis(self) -> Server:
        """The broker."""
        return self.services.redis

    @property
    def node(self) -> Server:
        """The chain's process."""
        return self.services.node

    @property
    def provider(self) -> StripeDouble:
        """The payment provider's process."""
        return self.services.stripe

    def newcomer(self) -> Person:
        """Sign a new user in, with a million credits and no calls."""
        return sign_in(self.unused_profiles.pop(), base_url=self.web.url, rpc_url=self.services.rpc_url)

    def newcomers(self, number: int) -> list[Person]:
        """Sign several of them in."""
        return side_by_side([self.newcomer] * number, threads=8)

    def kill(self, server: Server) -> None:
        """End a part and every process it has started with SIGKILL."""
        os.killpg(server.pid, signal.SIGKILL)
        server.stop()

    def restart(self, *servers: Server) -> None:
        """Start parts that have ended, and wait until they are ready."""
        _start(*servers)

    @contextmanager
    def frozen(self, *servers: Server) -> Iterator[None]:
        """Suspend parts for the length of the block; a part killed meanwhile stays dead."""
        for server in servers:
            os.killpg(server.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for server in servers:
                thaw(server)

    @contextmanager
    def joined_by(self, *servers: Server) -> Iterator[None]:
        """Run further parts for the length of the block."""
        try:
            _start(*servers)
            yield
        finally:
            end(*servers)

    def forget_messages(self) -> None:
        """Lose everything that waits in the broker."""
        with redis.Redis.from_url(self.services.redis_url) as client:
            client.flushall()

    def enqueue(self, task: str) -> None:
        """Enqueue a task by name, as the clock does."""
        with Celery(broker=self.services.redis_url, set_as_current=False) as clock:
            clock.conf.task_routes = settings.CELERY_TASK_ROUTES
            clock.conf.task_default_queue = settings.CELERY_TASK_DEFAULT_QUEUE
            clock.send_task(task)

    def manage(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a management command beside the service."""
        return self._python("manage.py", *arguments)

    def adjust(self, profile_address: str, credits: int) -> None:
        """Correct a balance as staff does."""
        command = ("adjust_credits", profile_address, str(credits))
        self.manage(*command, "--reason", "A journey.", "--actor", "support").check_returncode()

    def until_node_gets_request(self) -> None:
        """Wait until the suspended node has a request to read."""
        port = urlsplit(self.services.rpc_url).port
        until("the node has a request", lambda: _unread_bytes(port))

    def until_sent(self, profile_address: str) -> None:
        """Wait until the node has everything that was signed for a profile."""
        until("everything is sent", lambda: not self.records.unsent(profile_address))

    def reconciles(self) -> bool:
        """Return whether the rows explain every credit and the provider every payment; differences are printed."""
        outcome = self.manage("shell", "-c", _RECONCILE)
        print(outcome.stdout, outcome.stderr[-2000:])  # noqa: T201
        return not outcome.returncode

    def mend(self) -> None:
        """Bring back whatever a test has stopped or what has ended by itself, and the pace of the chain."""
        servers = (self.node, self.redis, self.provider, self.web, self.worker, self.beat)
        for server in servers:
            thaw(server)
        ended = [server for server in servers if server.has_ended]
        for server in ended:
            # pytest shows this below a test that failed.
            logger.warning("%s had ended: %s", server.name, server.last_words())
        _start(*ended)
        self.chain.resume()
        self.provider.controls.clear_faults()
        self.provider.controls.release()

    @contextmanager
    def broken_by(self, scenarios: Iterable[Generator[None, None, None]]) -> Iterator[None]:
        """Mend what scenarios have broken, and release the locks that they still hold if the block fails."""
        try:
            yield
        finally:
            for steps in scenarios:
                steps.close()
            self.mend()

    def _python(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=PROJECT, env=self.environment, capture_output=True, text=True)


@contextmanager
def running_stack(directory: Path) -> Iterator[Stack]:
    """Run the service for the length of the block; no process of it is left afterwards."""
    logs = directory / "log"
    with start_services(directory, block_time=BLOCK_SECONDS, durable=False) as services:
        settings = {
            _LIMIT: str(10**7),
            "DATABASE_STATEMENT_TIMEOUT_SECONDS": str(_STUCK_SECONDS),
            **overriding(
                DATABASE_LOCK_SECONDS=_STUCK_SECONDS,
                STRIPE_TIMEOUT_SECONDS=_STUCK_SECONDS,
                CHAIN_RPC_TIMEOUT_SECONDS=_NODE_SECONDS,
            ),
        }
        plan = Plan([ProfilePlan() for _ in range(_CROWD)], settings=settings)
        prepared = prepare(services, directory, plan, port=free_port(), block_time=BLOCK_SECONDS)
        prepared.seed()
        environment = prepared.environment
        web = Web(logs, environment, port=prepared.port, processes=2)
        worker, beat = FirstWorker(logs, environment), Beat(logs, environment)
        stack = Stack(services, environment, logs, web, worker, beat, prepared.profiles, prepared.networks)
        parts: tuple[Server, ...] = (web, worker, beat)
        try:
            _start(*parts)
            yield stack
        finally:
            end(*parts)


def _start(*servers: Server) -> None:
    for server in servers:
        server.start()
    for server in servers:
        server.wait(_START_SECONDS)


def thaw(server: Server) -> None:
    """Resume a part; nothing happens to one that runs or is gone."""
    with suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGCONT)


def _unread_bytes(port: int | None) -> int:
    """Return how much has arrived at a local port and was not read, as the kernel counts it."""
    connections = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(
        int(queues.partition(":")[2], 16)
        for _, local, _, _, queues, *_ in connections
        if int(local.partition(":")[2], 16) == port
    )


def end(*servers: Server) -> None:
    """Stop parts in their orderly way; wait until all of their processes are gone, by force if need be."""
    for server in servers:
        thaw(server)
    stop_all(servers)
    for server in servers:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        until(f"{server.name} left no process", partial(_is_empty, server.pid))


def _is_empty(group: int) -> bool:
    """Return whether no process of the group is left."""
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                return False
    return True
