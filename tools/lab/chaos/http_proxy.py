"""
A proxy that parses HTTP, and JSON-RPC inside it.

For each request a rule decides whether to forward it, respond itself, or cut the connection before or after the server
has handled it.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from lab.chaos.proxies import Client, Proxy, Severed, Side


@dataclass(frozen=True)
class Message:
    """A request or a response."""

    head: bytes
    body: bytes

    @property
    def first_line(self) -> str:
        """Method and path, or the status."""
        return self.head.split(b"\r\n", 1)[0].decode()

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls of a JSON-RPC request, or their results."""
        content = json.loads(self.body)
        return content if isinstance(content, list) else [content]

    @property
    def raw(self) -> bytes:
        """Its bytes."""
        return self.head + b"\r\n\r\n" + self.body


Forward = Callable[[Message], Awaitable[Message]]
Rule = Callable[[Message, Forward], Coroutine[Any, Any, Message | None]]


def answer(status: str, content: object) -> Message:
    """Return a response with a JSON body."""
    body = json.dumps(content).encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    return Message(head.encode(), body)


class HttpProxy(Proxy):
    """Applies its rule to each request, and reports each to its trap."""

    rule: Rule | None = None

    async def _pump_both(
        self, client: Client, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        async def forward(request: Message) -> Message:
            writer.write(request.raw)
            return await read_message(reader)

        while True:
            request = await read_message(client.reader)
            self._report(request, Side.BEFORE, client)
            await self._flows.wait()
            answered = await (self.rule(request, forward) if self.rule else forward(request))
            if answered is None:
                raise Severed
            self._report(request, Side.AFTER, client)
            await self._flows.wait()
            client.writer.write(answered.raw)
            await client.writer.drain()

    def _report(self, request: Message, side: Side, client: Client) -> None:
        if self.trap is None:
            return
        for doing in self.named(request):
            if self.trap.triggers(doing=doing, during=(), side=side, client_port=client.port):
                raise Severed

    def named(self, request: Message) -> Sequence[str]:
        """Return the first line of the request."""
        return [request.first_line]


class NodeProxy(HttpProxy):
    """A proxy of JSON-RPC."""

    def named(self, request: Message) -> Sequence[str]:
        """Return the methods of the calls."""
        return [call["method"] for call in request.calls]


async def read_message(reader: asyncio.StreamReader) -> Message:
    """Read a message with a Content-Length."""
    head = (await reader.readuntil(b"\r\n\r\n"))[:-4]
    lowered = head.lower()
    at = lowered.find(b"\r\ncontent-length:")
    length = int(lowered[at + 17 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
    return Message(head, await reader.readexactly(length))
