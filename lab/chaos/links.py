"""The connections of the machine's processes at a moment, by who has them and where they lead."""

from collections.abc import Collection, Sequence
from typing import Any, Self

import psutil


class Links:
    """
    The TCP connections at a moment.

    A connection counts as a client's only while it is open at both ends. One that the client has closed and the
    server has not is an open file of the server like any other.
    """

    def __init__(self, connections: Sequence[Any]) -> None:
        self._connections = [link for link in connections if link.raddr]

    @classmethod
    def now(cls) -> Self:
        return cls(psutil.net_connections("tcp4"))

    def clients_of(self, pid: int, port: int) -> int:
        """Return how many connections of living clients a process has on the port that it listens on."""
        return sum(
            link.pid == pid and link.laddr.port == port and link.status == psutil.CONN_ESTABLISHED
            for link in self._connections
        )

    def number_to(self, ports: Collection[int], pids: Collection[int]) -> int:
        """Return how many connections these processes have to a server of one of the ports."""
        return sum(link.pid in pids and link.raddr.port in ports for link in self._connections)

    def files(self, pid: int, port: int) -> int:
        """Return how many files and connections a process has open, without those of living clients."""
        try:
            return psutil.Process(pid).num_fds() - self.clients_of(pid, port)
        except psutil.NoSuchProcess:
            return 0
