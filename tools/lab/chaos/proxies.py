"""
Proxies in front of the servers of a stack, which can cut, stall and inspect connections.

They share one event loop in a separate thread. `Proxy` forwards bytes. Its subclasses parse the protocol and report
each operation to a trap, before and after the server executes it.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeVar

_Result = TypeVar("_Result")
_CHUNK = 65_536
_PATIENCE_SECONDS = 60.0

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[], Awaitable[Streams]]


class Side(Enum):
    """Whether the server has not yet received the operation, or has executed it without the client's knowledge."""

    BEFORE = "before"
    AFTER = "after"


class Trap(Protocol):
    """Watches the operations that pass a proxy until it triggers."""

    def triggers(self, *, doing: str, during: Sequence[str], side: Side, client_port: int) -> bool:
        """Trigger if this is the operation; return whether to cut the connection."""


class Severed(Exception):
    """The connection is to be cut."""


class Loop:
    """An event loop in a thread, which runs work for other threads."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)
        self._thread.start()

    def do(self, work: Awaitable[_Result]) -> _Result:
        """Run work in the loop and return its result."""

        async def run() -> _Result:
            return await work

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(_PATIENCE_SECONDS)

    def stop(self) -> None:
        """End the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


@dataclass(frozen=True)
class Client:
    """The client's end of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @property
    def port(self) -> int:
        """The client's port, which identifies its process."""
        return int(self.writer.get_extra_info("peername")[1])


class Proxy:
    """Listens on a loopback port and forwards each connection to a server."""

    def __init__(self, loop: Loop, connect: Connect) -> None:
        self.trap: Trap | None = None
        self._loop, self._connect = loop, connect
        self._is_cut = False
        self._flows = asyncio.Event()
        self._flows.set()
        self._open: set[asyncio.StreamWriter] = set()
        self._server = loop.do(asyncio.start_server(self._accept, "127.0.0.1", 0))

    @property
    def port(self) -> int:
        """Where clients connect."""
        return int(self._server.sockets[0].getsockname()[1])

    def cut(self) -> None:
        """Reset all present and new connections."""
        self._is_cut = True
        self._loop.do(self._reset())

    def hang(self) -> None:
        """Accept connections and data, but forward nothing."""
        self._loop.do(self._let_flow(False))

    def heal(self) -> None:
        """Pass everything again."""
        self._is_cut = False
        self._loop.do(self._let_flow(True))

    async def _let_flow(self, flows: bool) -> None:
        self._flows.set() if flows else self._flows.clear()

    async def _reset(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            if not self._is_cut:
                await self._serve(Client(reader, writer))
        except (OSError, Severed, asyncio.IncompleteReadError):
            pass
        finally:
            self._open.discard(writer)
            writer.transport.abort()

    async def _serve(self, client: Client) -> None:
        reader, writer = await self._connect()
        self._open.add(writer)
        try:
            await self._pump_both(client, reader, writer)
        finally:
            self._open.discard(writer)
            writer.transport.abort()

    async def _pump_both(
        self, client: Client, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        watch = self.watch_of(client)
        pumps = [
            asyncio.create_task(self._pump(client.reader, writer, watch.sent)),
            asyncio.create_task(self._pump(reader, client.writer, watch.answered)),
        ]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        for pump in pumps:
            with suppress(asyncio.CancelledError, OSError, Severed):
                await pump

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, watch: Callable[[bytes], bytes]
    ) -> None:
        while data := await reader.read(_CHUNK):
            await self._flows.wait()
            writer.write(watch(data))
            await writer.drain()

    def watch_of(self, client: Client) -> "Watch":
        """Return the inspector of one connection."""
        return Watch()


class Watch:
    """Inspects the bytes of one connection in both directions; each method returns the bytes to forward now."""

    def sent(self, data: bytes) -> bytes:
        """Inspect bytes of the client."""
        return data

    def answered(self, data: bytes) -> bytes:
        """Inspect bytes of the server."""
        return data


def tcp(port: Callable[[], int]) -> Connect:
    """Connect to a port of the loopback interface."""
    return lambda: asyncio.open_connection("127.0.0.1", port())
