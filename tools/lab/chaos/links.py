"""A snapshot of the machine's TCP connections, by process and peer."""

from collections.abc import Collection, Sequence
from typing import Any, Self

import psutil


class Links:
    """
    A snapshot of the TCP connections.

    A connection counts as a client's only while both ends are open. If only the client has closed it, it counts as an
    open file of the server.
    """

    def __init__(self, connections: Sequence[Any]) -> None:
        self._connections = [link for link in connections if link.raddr]

    @classmethod
    def now(cls) -> Self:
        return cls(psutil.net_connections("tcp4"))

    def clients_of(self, pid: int, port: int) -> int:
        """Return the number of open client connections on the port that a process listens on."""
        return sum(
            link.pid == pid and link.laddr.port == port and link.status == psutil.CONN_ESTABLISHED
            for link in self._connections
        )

    def number_to(self, ports: Collection[int], pids: Collection[int]) -> int:
        """Return the number of connections of these processes to servers on these ports."""
        return sum(link.pid in pids and link.raddr.port in ports for link in self._connections)

    def files(self, pid: int, port: int) -> int:
        """Return the number of a process's open files and connections, without open client connections."""
        try:
            return psutil.Process(pid).num_fds() - self.clients_of(pid, port)
        except psutil.NoSuchProcess:
            return 0
