"""The faults of a cluster, by name. Each returns when it is over; recovery may still be in progress."""

import os
import random
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

import psutil

from lab.chaos.stack import Keeper
from lab.cluster import network
from lab.cluster.network import Host, bring_together, plug_in, set_apart, unplug
from lab.cluster.stack import Cluster
from lab.cluster.state import master_of, primary_of, takes_writes, until

_REPLACED_SECONDS = 90
_STANDS_STILL_SECONDS, _APART_SECONDS, _HOST_LOST_SECONDS = 40, 40, 40
_HANGS_SECONDS, _REDIS_GONE_SECONDS = 45, 15
# The web server that is cut off together with the primary; some clients connect to it directly.
APART = (network.WEBS[0], network.WORKERS[0])


@dataclass(frozen=True)
class Scene:
    """The cluster, and the supervisor that restarts its servers."""

    cluster: Cluster
    keeper: Keeper


@dataclass(frozen=True)
class Fault:
    """A fault; with `cuts_off`, some of the clients are on the primary's side."""

    cause: Callable[[Scene], None]
    cuts_off: bool = False


def _primary_killed(scene: Scene, *, with_patroni: bool) -> None:
    host = primary_of(scene.cluster)
    patroni = scene.cluster.patroni(host)
    if with_patroni:
        os.kill(patroni.pid, signal.SIGKILL)
    os.kill(patroni.postmaster, signal.SIGKILL)
    _until_replaced(scene.cluster)


def _switched_over(scene: Scene) -> None:
    """Have Patroni hand the lead to a standby, as for maintenance of a host."""
    scene.cluster.patroni(primary_of(scene.cluster)).switch_over()
    _until_replaced(scene.cluster)


def _primary_paused(scene: Scene) -> None:
    """Pause PostgreSQL (SIGSTOP) but not Patroni."""
    host = primary_of(scene.cluster)
    with _stopped(_postgres_of(host)):
        time.sleep(_HANGS_SECONDS)
    _until_replaced(scene.cluster)


def _primary_host_paused(scene: Scene) -> None:
    """Pause every process on the primary's host until another host is the primary."""
    host = primary_of(scene.cluster)
    with _stopped(map(psutil.Process, host.pids)):
        time.sleep(_STANDS_STILL_SECONDS)
    _until_replaced(scene.cluster)


def _host_lost(scene: Scene, *, standbys_away_seconds: float = 0) -> None:
    """
    Disconnect the primary's host and kill everything on it; restarted servers stay isolated until it is reconnected.

    With `seconds`, the standbys are disconnected for that time before, until the moment of the loss: a commit that did
    not wait for a standby is lost.
    """
    host = primary_of(scene.cluster)
    with _unplugged([each for each in network.DATABASES if each != host], standbys_away_seconds):
        unplug(host)
    try:
        for pid in host.pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_HOST_LOST_SECONDS)
    finally:
        plug_in(host)
    _until_replaced(scene.cluster)


def _cut_off(scene: Scene) -> None:
    """Isolate the primary with a web server, a relay worker and a clock; clients and the node reach both sides."""
    hosts = (primary_of(scene.cluster), *APART)
    set_apart(hosts)
    try:
        time.sleep(_APART_SECONDS)
    finally:
        bring_together(hosts)
    _until_replaced(scene.cluster)


def _redis_killed(scene: Scene) -> None:
    _rest(scene, [f"{master_of(scene.cluster).name}-redis"], seconds=_REDIS_GONE_SECONDS)


def _all_redis_down(scene: Scene, *, seconds: float) -> None:
    _rest(scene, [f"{host.name}-redis" for host in network.DATABASES], seconds=seconds)


def _one_killed(kind: str, scene: Scene) -> None:
    """Kill a random server of a kind; the supervisor restarts it at once."""
    names = [name for name in scene.cluster.servers if name.endswith(f"-{kind}") or name == kind]
    name = random.choice(names)  # noqa: S311 - not a secret
    server = scene.cluster.servers[name]
    _kill_group(server.pid)
    until(
        lambda: not server.has_ended and server.answers(), seconds=120, otherwise=f"{name} was not restarted"
    )


FAULTS: dict[str, Fault] = {
    "postgres: primary killed": Fault(partial(_primary_killed, with_patroni=False)),
    "postgres: primary and its Patroni killed": Fault(partial(_primary_killed, with_patroni=True)),
    "postgres: primary paused for 45 s": Fault(_primary_paused),
    "postgres: switchover": Fault(_switched_over),
    "host of the primary paused for 40 s": Fault(_primary_host_paused),
    "host of the primary lost for 40 s": Fault(_host_lost),
    "host of the primary lost after 3 s without standbys": Fault(
        partial(_host_lost, standbys_away_seconds=3)
    ),
    "partition: primary with clients for 40 s": Fault(_cut_off, cuts_off=True),
    "redis: master down for 15 s": Fault(_redis_killed),
    "redis: all down for a minute": Fault(partial(_all_redis_down, seconds=60)),
    "redis: all down for ten minutes": Fault(partial(_all_redis_down, seconds=600)),
    **{
        f"kill {kind}": Fault(partial(_one_killed, kind))
        for kind in ("web", "worker-relay", "worker-default", "beat", "pgbouncer", "signer")
    },
}


def _until_replaced(cluster: Cluster) -> None:
    time.sleep(1)
    until(
        lambda: takes_writes(cluster),
        seconds=_REPLACED_SECONDS,
        otherwise="No primary accepts writes in time.",
    )


def _rest(scene: Scene, names: Sequence[str], *, seconds: float) -> None:
    """Kill servers and do not restart them for some time."""
    scene.keeper.resting |= set(names)
    try:
        for name in names:
            _kill_group(scene.cluster.servers[name].pid)
        time.sleep(seconds)
    finally:
        scene.keeper.resting -= set(names)


def _kill_group(pid: int) -> None:
    """Kill a server and its children; each server leads a process group."""
    os.killpg(pid, signal.SIGKILL)


def _postgres_of(host: Host) -> Iterator[psutil.Process]:
    for process in map(psutil.Process, host.pids):
        with suppress(psutil.NoSuchProcess):
            if process.name() == "postgres":
                yield process


@contextmanager
def _unplugged(hosts: Sequence[Host], seconds: float) -> Iterator[None]:
    """Disconnect hosts; after some seconds run the block, then reconnect them."""
    try:
        for host in hosts if seconds else ():
            unplug(host)
        time.sleep(seconds)
        yield
    finally:
        for host in hosts if seconds else ():
            plug_in(host)


@contextmanager
def _stopped(processes: Iterable[psutil.Process]) -> Iterator[None]:
    stopped = []
    try:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.suspend()
                stopped.append(process)
        yield
    finally:
        for process in stopped:
            with suppress(psutil.NoSuchProcess):
                process.resume()
