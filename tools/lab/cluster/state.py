"""The state of a cluster: its primary, and whether it has recovered."""

import time
from collections.abc import Callable

import redis as redis_client

from lab.cluster import network, settings
from lab.cluster.network import Host
from lab.cluster.servers import is_reachable
from lab.cluster.stack import Cluster

_POLL_SECONDS, _WHOLE_SECONDS = 0.2, 180


class NotWhole(RuntimeError):
    """The cluster has not recovered in time."""


def until(is_so: Callable[[], bool], *, seconds: float, otherwise: str) -> None:
    """
    Wait for a condition.

    Raises:
        NotWhole: timeout.
    """
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise NotWhole(otherwise)
        time.sleep(_POLL_SECONDS)


def primary_of(cluster: Cluster) -> Host:
    """Return the host of the primary; wait during an election."""
    found: list[Host] = []

    def is_found() -> bool:
        # A busy host may not respond a second time.
        found[:] = _primaries(cluster)
        return bool(found)

    until(is_found, seconds=60, otherwise="There is no primary.")
    return found[0]


def master_of(cluster: Cluster) -> Host:
    """Return the host of the Redis master, as reported by the Sentinels."""
    for host in network.DATABASES:
        try:
            with redis_client.Redis(host.address, settings.SENTINEL_PORT, socket_timeout=2) as client:
                result = client.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", settings.REDIS_SERVICE)
        except redis_client.RedisError:
            continue
        address = result[0].decode()
        return next(each for each in network.DATABASES if each.address == address)
    raise NotWhole("No Sentinel answers.")


def takes_writes(cluster: Cluster) -> bool:
    """Return whether there is a primary and HAProxy connects to it."""
    return is_reachable(cluster.outside.database_url)


def wait_until_whole(cluster: Cluster) -> None:
    """
    Wait until every server responds, the primary has both standbys, and the Redis master has both replicas.

    Raises:
        NotWhole: timeout; the message lists the missing parts.
    """
    deadline = time.monotonic() + _WHOLE_SECONDS
    while missing := _missing(cluster):
        if time.monotonic() > deadline:
            raise NotWhole(f"after {_WHOLE_SECONDS} s: {', '.join(missing)}")
        time.sleep(1)


def _missing(cluster: Cluster) -> list[str]:
    missing = [name for name, server in cluster.servers.items() if server.has_ended or not server.answers()]
    standbys = [host for host in network.DATABASES if _stands_by(cluster, host)]
    if len(_primaries(cluster)) != 1 or len(standbys) != len(network.DATABASES) - 1:
        missing.append("a primary with two standbys")
    elif not takes_writes(cluster):
        missing.append("HAProxy's connection to the primary")
    if not missing and _copies(cluster) != len(network.DATABASES) - 1:
        missing.append("a Redis master with two replicas")
    return missing


def _primaries(cluster: Cluster) -> list[Host]:
    return [host for host in network.DATABASES if cluster.patroni(host).is_primary]


def _stands_by(cluster: Cluster, host: Host) -> bool:
    patroni = cluster.patroni(host)
    return patroni.is_synchronous if cluster.synchronous else patroni.is_standby


def _copies(cluster: Cluster) -> int:
    try:
        return cluster.redis(master_of(cluster)).copies
    except redis_client.RedisError:
        return 0
