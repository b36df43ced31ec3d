"""The faults, by name. Each is a context manager: active when the block is entered, over when it is left."""

import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial

import psutil
import redis

from lab.chaos import node_faults
from lab.chaos.alerts import (
    AWAY,
    CLOCKS,
    DISK_FULL,
    LOCKED,
    OPEN_READ_ONLY,
    READ_ONLY,
    REDIS,
    SESSIONS,
    Sign,
)
from lab.chaos.http_proxy import Rule
from lab.chaos.machine_faults import MACHINE_FAULTS
from lab.chaos.node_faults import changed, refusing
from lab.chaos.points import CANCELLATION_POINTS, POINTS, REPLACEMENT_POINTS, Killing, Point
from lab.chaos.proxies import Proxy
from lab.chaos.slow_clients import KINDS, slow_clients
from lab.chaos.stack import Stack
from lab.chaos.store_faults import STORE_FAULTS

_COMES_WITHIN_SECONDS = 120
_STALLS_SECONDS, _STALL_SECONDS, _GONE_SECONDS = (5, 10, 20, 60), (15,), 60
_NODE_SECONDS, _HUNG_SECONDS, _SLOW_CLIENTS_SECONDS = 8, 60, 15
_VALIDITY_SECONDS = 6

Context = AbstractContextManager[None]


class NeverCame(RuntimeError):
    """The trigger point of a fault was not reached in time."""


@dataclass(frozen=True)
class Fault:
    """A fault, with the number of nodes and relay workers it needs, and the validity of calls in seconds."""

    caused: Callable[[Stack], Context]
    nodes: int = 1
    relay_workers: int = 1
    validity_seconds: int | None = None
    is_believed: bool = False
    """Whether the only node lies; then damage is expected and reported."""
    sign: Sign | None = None
    """The metric whose alert names the fault."""
    most_held_up: int | None = None
    """Of how many profiles no call may be accepted meanwhile; those of others may be slowed to double at most."""
    kind: str = ""
    """Faults of the same kind share one load, one after the other; a fault without a kind has its own load."""


@contextmanager
def _killed_at(point: Point, stack: Stack) -> Iterator[None]:
    proxies: dict[str, tuple[Proxy, ...]] = {
        "postgres": (stack.proxies.postgres,),
        "node": stack.proxies.nodes,
        "stripe": (stack.proxies.stripe,),
    }
    killing = Killing(point, stack.owner_of)
    for proxy in proxies[point.server]:
        proxy.trap = killing
    came = killing.triggered.wait(_COMES_WITHIN_SECONDS)
    for proxy in proxies[point.server]:
        proxy.trap = None
    if not came:
        raise NeverCame(f"No process of {point.component} reached the point {point.name}.")
    yield


@contextmanager
def _killed_while(rule: Callable[[], Rule], point: Point, stack: Stack) -> Iterator[None]:
    """Kill at a point that is reached only when the node misbehaves."""
    with _node_does(rule(), stack, seconds=0), _killed_at(point, stack):
        pass
    yield


@contextmanager
def _node_does(rule: Rule, stack: Stack, *, seconds: float = _NODE_SECONDS) -> Iterator[None]:
    """Apply a rule to the first node for the block and `seconds` more."""
    node = stack.proxies.nodes[0]
    node.rule = rule
    try:
        time.sleep(seconds)
        yield
    finally:
        node.rule = None


@contextmanager
def _node_is(state: Callable[[Proxy], None], seconds: float, stack: Stack) -> Iterator[None]:
    node = stack.proxies.nodes[0]
    state(node)
    time.sleep(seconds)
    node.heal()
    yield


@contextmanager
def _signalled(number: signal.Signals, server: str, stack: Stack) -> Iterator[None]:
    """Send a server a signal, and wait until the supervisor has restarted it."""
    process = psutil.Process(stack.server(server).pid)
    process.send_signal(number)
    process.wait()
    stack.wait_for(server)
    yield


@contextmanager
def _stalled(server: str, seconds: Sequence[int], stack: Stack) -> Iterator[None]:
    """Pause a server (SIGSTOP) for a random one of these times; it receives its pending input afterwards."""
    process = psutil.Process(stack.server(server).pid)
    process.suspend()
    try:
        time.sleep(random.choice(seconds))  # noqa: S311 - not a secret
    finally:
        process.resume()
    yield


@contextmanager
def _redis_is_gone(stack: Stack) -> Iterator[None]:
    stack.proxies.redis.cut()
    time.sleep(_GONE_SECONDS)
    stack.proxies.redis.heal()
    yield


@contextmanager
def _redis_flushed(stack: Stack) -> Iterator[None]:
    with redis.Redis.from_url(stack.services.redis_url) as client:
        client.flushall()
    yield


@contextmanager
def _slow_clients(kind: str, stack: Stack) -> Iterator[None]:
    with slow_clients(stack.prepared.port, *KINDS[kind]):
        time.sleep(_SLOW_CLIENTS_SECONDS)
    yield


# False reports that a single node can make the service accept.
_BELIEVED = {"lying receipt (reverted)", "lying receipt (twice the gas)"}
_RULES: dict[str, Rule] = {
    "cut before acceptance": node_faults.cut_before_sending,
    "cut after acceptance": node_faults.cut_after_sending,
    "429": node_faults.too_many_requests,
    "slow": node_faults.slowly,
    "wrong chain id": changed(node_faults.wrong_chain_id),
    "50 blocks behind": node_faults.behind,
    "lying receipt (reverted)": changed(node_faults.reverted_receipts),
    "lying receipt (twice the gas)": changed(node_faults.costly_receipts),
    "lying nonce (too high)": changed(node_faults.moved_nonces(5)),
    "lying nonce (too low)": changed(node_faults.moved_nonces(-5)),
    "already known": changed(node_faults.already_known),
    "lost broadcast": node_faults.lost_broadcast,
}


def _underpriced() -> Rule:
    return refusing("transaction underpriced", once=True)


def _takes_nothing() -> Rule:
    return refusing("txpool is full", once=False)


def _node_faults(nodes: int) -> dict[str, Fault]:
    name = "node" if nodes == 1 else "one node of two"
    made = {
        f"{name}: {what}": Fault(
            partial(_node_does_for_a_while, rule), nodes, is_believed=nodes == 1 and what in _BELIEVED
        )
        for what, rule in _RULES.items()
    }
    made[f"{name}: underpriced"] = Fault(lambda stack: _node_does_for_a_while(_underpriced(), stack), nodes)
    made[f"{name}: gone"] = Fault(partial(_node_is, Proxy.cut, _NODE_SECONDS), nodes)
    made[f"{name}: hung for a minute"] = Fault(partial(_node_is, Proxy.hang, _HUNG_SECONDS), nodes)
    return made


@contextmanager
def _node_does_for_a_while(rule: Rule, stack: Stack) -> Iterator[None]:
    with _node_does(rule, stack):
        pass
    yield


def _redis_faults(relay_workers: int) -> dict[str, Fault]:
    """Return the Redis faults during which relaying must continue, for any number of workers."""
    caused: dict[str, Callable[[Stack], Context]] = {
        "stalled 15 s": partial(_stalled, "redis", _STALL_SECONDS),
        "gone 60 s": _redis_is_gone,
        "flushed": _redis_flushed,
    }
    workers = "1 relay worker" if relay_workers == 1 else f"{relay_workers} relay workers"
    return {
        f"relay without redis: {what}, {workers}": Fault(cause, relay_workers=relay_workers)
        for what, cause in caused.items()
    }


_LOCKED = ("postgres: account locked for 60 s", "postgres: relayer locked for 60 s")
_SIGNS = {
    "clocks:": CLOCKS,
    "postgres: read-only": READ_ONLY,
    "postgres: open sessions": OPEN_READ_ONLY,
    "postgres: 100 sessions": SESSIONS,
    "postgres: data disk": DISK_FULL,
    "postgres: WAL disk": AWAY,
    **dict.fromkeys(_LOCKED, LOCKED),
    **dict.fromkeys(("redis: read-only", "redis: out of memory", "redis: wrong types"), REDIS),
}
_PARTIAL = ("postgres: open sessions read-only", "postgres: 100 sessions terminated")
_MOST_HELD_UP = dict.fromkeys(_LOCKED + _PARTIAL, 1) | {
    name: 0 for name in STORE_FAULTS if name.startswith("redis") and name.endswith("60 s")
}


def _sign_of(fault: str) -> Sign | None:
    return next((sign for begin, sign in _SIGNS.items() if fault.startswith(begin)), None)


FAULTS: dict[str, Fault] = {
    **{f"kill {point.name}": Fault(partial(_killed_at, point), kind="kill") for point in POINTS},
    **{
        f"kill {point.name}": Fault(partial(_killed_while, _underpriced, point), kind="kill")
        for point in REPLACEMENT_POINTS
    },
    **{
        f"kill {point.name}": Fault(
            partial(_killed_while, _takes_nothing, point),
            validity_seconds=_VALIDITY_SECONDS,
            kind="kill while calls expire",
        )
        for point in CANCELLATION_POINTS
    },
    "postgres: immediate shutdown": Fault(partial(_signalled, signal.SIGQUIT, "postgres")),
    "redis: killed": Fault(partial(_signalled, signal.SIGKILL, "redis")),
    "redis: stalled 5-60 s": Fault(partial(_stalled, "redis", _STALLS_SECONDS)),
    "redis: flushed": Fault(_redis_flushed),
    "stripe: killed": Fault(partial(_signalled, signal.SIGKILL, "stripe")),
    "stripe: stalled 5-60 s": Fault(partial(_stalled, "stripe", _STALLS_SECONDS)),
    **{
        name: Fault(caused, sign=_sign_of(name), most_held_up=_MOST_HELD_UP.get(name))
        for name, caused in (STORE_FAULTS | MACHINE_FAULTS).items()
    },
    **{name: fault for workers in (1, 2, 4) for name, fault in _redis_faults(workers).items()},
    **_node_faults(1),
    **_node_faults(2),
    **{f"clients: {kind}": Fault(partial(_slow_clients, kind)) for kind in KINDS},
}
