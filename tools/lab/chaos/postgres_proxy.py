"""A proxy that parses PostgreSQL's protocol: each client's statements and transactions."""

from collections.abc import Iterator

from lab.chaos.proxies import Client, Proxy, Severed, Side, Watch

_LENGTH = 4
_ENDS = {"COMMIT", "ROLLBACK"}
_READY = b"Z"


class PostgresProxy(Proxy):
    """Reports each statement to its trap, before the server receives it and after it was executed."""

    def watch_of(self, client: Client) -> Watch:
        """Return the reader of one session."""
        return _Session(self, client.port)


class _Session(Watch):
    """One session: its prepared statements and those of its current transaction."""

    def __init__(self, proxy: PostgresProxy, client_port: int) -> None:
        self._proxy, self._client_port = proxy, client_port
        self._sent, self._answered = Frames(begins_untyped=True), Frames()
        self._prepared: dict[bytes, str] = {}
        self._transaction: list[str] = []
        self._executing: list[str] = []

    def sent(self, data: bytes) -> bytes:
        whole = self._sent.feed(data)
        for kind, body in self._sent.frames:
            statement = self._statement_of(kind, body)
            if statement is not None:
                self._report(statement, Side.BEFORE)
                self._executing.append(statement)
        return whole

    def answered(self, data: bytes) -> bytes:
        whole = self._answered.feed(data)
        if any(kind == _READY for kind, _ in self._answered.frames):
            done, self._executing = self._executing, []
            for statement in done:
                self._report(statement, Side.AFTER)
                self._transaction.append(statement)
                if statement.upper() in _ENDS:
                    self._transaction.clear()
        return whole

    def _statement_of(self, kind: bytes, body: bytes) -> str | None:
        """Return the text of the statement that this message executes."""
        if kind == b"P":
            name, text, _ = body.split(b"\0", 2)
            self._prepared[name] = text.decode(errors="replace")
        elif kind == b"B":
            return self._prepared.get(body.split(b"\0", 2)[1])
        elif kind == b"Q":
            return body[:-1].decode(errors="replace")
        return None

    def _report(self, statement: str, side: Side) -> None:
        trap = self._proxy.trap
        if trap is not None and trap.triggers(
            doing=statement, during=self._transaction, side=side, client_port=self._client_port
        ):
            raise Severed


class Frames:
    """Splits a stream into messages: a type byte, a length, a body. A client's first message has no type byte."""

    def __init__(self, *, begins_untyped: bool = False) -> None:
        self._rest = b""
        self._is_untyped = begins_untyped
        self.frames: list[tuple[bytes, bytes]] = []

    def feed(self, data: bytes) -> bytes:
        """Return the bytes of all complete messages; `frames` has their types and bodies."""
        self._rest += data
        self.frames = []
        used = 0
        for start, end in self._whole():
            kind = self._rest[used : start - _LENGTH]
            self.frames.append((kind, self._rest[start:end]))
            used = end
        whole, self._rest = self._rest[:used], self._rest[used:]
        return whole

    def _whole(self) -> Iterator[tuple[int, int]]:
        """Yield start and end of the body of each complete message."""
        at = 0
        while True:
            start = at + (0 if self._is_untyped else 1) + _LENGTH
            if len(self._rest) < start:
                return
            end = start - _LENGTH + int.from_bytes(self._rest[start - _LENGTH : start])
            if len(self._rest) < end:
                return
            self._is_untyped = False
            yield start, end
            at = end
