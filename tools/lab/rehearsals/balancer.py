"""A round-robin load balancer in front of the web processes, with one connection per request."""

import asyncio
from collections import Counter
from contextlib import suppress
from itertools import count

from lab.chaos.http_proxy import Message, read_message
from lab.chaos.proxies import Loop


class Balancer:
    """Balances like nginx by default, but never retries a failed request."""

    def __init__(self, loop: Loop) -> None:
        self._rotation: list[int] = []
        self._in_flight: Counter[int] = Counter()
        self._turns = count()
        self._loop, self._serving = loop, set[asyncio.Task[None]]()
        self._server = loop.do(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = int(self._server.sockets[0].getsockname()[1])

    def close(self) -> None:
        """Close all connections of clients."""
        self._loop.do(self._close())

    async def _close(self) -> None:
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def put_in(self, port: int) -> None:
        """Add a web process to the rotation."""
        self._rotation = [*self._rotation, port]

    def take_out(self, port: int) -> None:
        """Remove it from the rotation; its current requests continue."""
        self._rotation = [other for other in self._rotation if other != port]

    def is_idle(self, port: int) -> bool:
        """Return whether all its requests were served."""
        return not self._in_flight[port]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if task := asyncio.current_task():
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                answered = await self._forward(await read_message(reader))
                writer.write(answered.raw)
                await writer.drain()
        writer.close()

    async def _forward(self, request: Message) -> Message:
        port = self._rotation[next(self._turns) % len(self._rotation)]
        self._in_flight[port] += 1
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request.raw)
            answered = await read_message(reader)
            writer.close()
        finally:
            self._in_flight[port] -= 1
        return answered
