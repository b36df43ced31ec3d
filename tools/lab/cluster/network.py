"""
Simulated hosts: a network namespace each, on a bridge with unrouted addresses.

The machine itself is the outside: clients, the node, the payment provider, and the signer, which both sides of a
partition reach like a cloud service.

For a partition, some hosts are moved to a second bridge, where they reach only each other and the outside.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

# RFC 2544 reserves these addresses for tests; routers do not forward them.
_NETWORK = "198.18.77"
OUTSIDE = f"{_NETWORK}.1"
_PREFIX = "gwc-"
_WHOLE, _APART = f"{_PREFIX}whole", f"{_PREFIX}apart"
_NAMESPACES = Path("/run/netns")
_PROGRAMS = ("ip", "nsenter", "unshare")
_LOCK = Path("/run/gwc.lock")
# Whether packets that cross a bridge pass iptables; the file is there while the kernel can do that.
BRIDGES_FILTERED = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")


@dataclass(frozen=True)
class Host:
    """A namespace with a name and an address."""

    name: str
    number: int

    @property
    def address(self) -> str:
        """Its address on the bridge."""
        return f"{_NETWORK}.{self.number}"

    @property
    def namespace(self) -> str:
        """The name of its namespace, and of its interface at the bridge."""
        return f"{_PREFIX}{self.name}"

    @property
    def prefix(self) -> list[str]:
        """The prefix of a command that runs there; the process keeps its id."""
        naming = ["sh", "-c", 'hostname "$0" && exec "$@"', self.name]
        return ["nsenter", f"--net={_NAMESPACES / self.namespace}", "--", "unshare", "--uts", *naming]

    @property
    def pids(self) -> list[int]:
        """The ids of its processes."""
        return _pids(self.namespace)


# The hosts; `lab.cluster.stack` assigns their servers.
DATABASES = (Host("db1", 11), Host("db2", 12), Host("db3", 13))
WEBS = (Host("web1", 21), Host("web2", 22), Host("web3", 23))
WORKERS = (Host("work1", 31), Host("work2", 32))
FRONT = Host("front", 51)
ALL = (*DATABASES, *WEBS, *WORKERS, FRONT)


@contextmanager
def network_of(hosts: Sequence[Host]) -> Iterator[None]:
    """
    Create the hosts for the block; remove them afterwards, and leftovers of a killed run before.

    Raises:
        RuntimeError: without root, kernel support for namespaces and bridges, on a machine that drops what the hosts
            send each other, or while another cluster runs.
    """
    if os.geteuid() != 0:
        raise RuntimeError("Only root can create network namespaces.")
    if missing := [name for name in _PROGRAMS if shutil.which(name) is None]:
        raise RuntimeError(f"Missing programs: {', '.join(missing)}. Install iproute2 and util-linux.")
    check_forwarding()
    with _alone():
        remove_everything()
        try:
            for bridge in (_WHOLE, _APART):
                _ip("link", "add", bridge, "type", "bridge")
                _ip("link", "set", bridge, "up")
            _ip("address", "add", f"{OUTSIDE}/24", "dev", _WHOLE)
            for host in hosts:
                _add(host)
            yield
        finally:
            remove_everything()


def set_apart(hosts: Sequence[Host]) -> None:
    """Isolate these hosts: they reach only each other and the outside."""
    for host in hosts:
        _ip("link", "set", host.namespace, "master", _APART)
        _ip("route", "replace", f"{host.address}/32", "dev", _APART, "src", OUTSIDE)
    _forget_neighbours()


def bring_together(hosts: Sequence[Host]) -> None:
    """Undo `set_apart`."""
    for host in hosts:
        _ip("link", "set", host.namespace, "master", _WHOLE)
        _ip("route", "delete", f"{host.address}/32", "dev", _APART)
    _forget_neighbours()


def unplug(host: Host) -> None:
    """Disconnect a host; packets to its address are dropped."""
    _ip("link", "set", host.namespace, "nomaster")


def plug_in(host: Host) -> None:
    """Undo `unplug`."""
    _ip("link", "set", host.namespace, "master", _WHOLE)


def remove_everything() -> None:
    """End every process in a namespace of ours, and remove namespaces and bridges."""
    namespaces = sorted(path.name for path in _NAMESPACES.glob(f"{_PREFIX}*"))
    deadline = time.monotonic() + 10
    while (pids := [pid for name in namespaces for pid in _pids(name)]) and time.monotonic() < deadline:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    for name in namespaces:
        _ip("netns", "delete", name)
    for link in Path("/sys/class/net").glob(f"{_PREFIX}*"):
        # The kernel removes an interface shortly after its namespace.
        subprocess.run(["ip", "link", "delete", link.name], capture_output=True, check=False)


def check_forwarding(bridges_filtered: Path = BRIDGES_FILTERED) -> None:
    """
    Refuse a machine as a Docker engine leaves it.

    Raises:
        RuntimeError: its packet filter drops what goes from host to host.
    """
    is_filtered = bridges_filtered.exists() and bridges_filtered.read_text().strip() == "1"
    if not is_filtered or shutil.which("iptables") is None:
        return
    rules = subprocess.run(["iptables", "-S", "FORWARD"], capture_output=True, text=True, check=False).stdout
    if "-P FORWARD DROP" in rules.splitlines():
        raise RuntimeError(
            "iptables drops what the hosts send each other, because a Docker engine has set the policy of FORWARD to "
            "DROP. Run `iptables -P FORWARD ACCEPT`, and try again."
        )


@contextmanager
def _alone() -> Iterator[None]:
    with _LOCK.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RuntimeError("Another cluster runs on this machine.") from error
        yield


def _add(host: Host) -> None:
    inside = f"{host.namespace}i"
    _ip("netns", "add", host.namespace)
    _ip("link", "add", host.namespace, "type", "veth", "peer", "name", inside)
    _ip("link", "set", inside, "netns", host.namespace)
    _ip("link", "set", host.namespace, "master", _WHOLE, "up")
    for words in (
        ["link", "set", inside, "name", "eth0"],
        ["address", "add", f"{host.address}/24", "dev", "eth0"],
        ["link", "set", "eth0", "up"],
        ["link", "set", "lo", "up"],
    ):
        _ip("-netns", host.namespace, *words)


def _forget_neighbours() -> None:
    for bridge in (_WHOLE, _APART):
        _ip("neighbour", "flush", "dev", bridge)


def _pids(namespace: str) -> list[int]:
    return [int(line) for line in _ip("netns", "pids", namespace).split()]


def _ip(*words: str) -> str:
    outcome = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        raise RuntimeError(f"ip {' '.join(words)}: {outcome.stderr.strip()}")
    return outcome.stdout
