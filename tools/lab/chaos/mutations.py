"""Random mutations of a node's responses: what no honest node sends, and what some have sent."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from lab.chaos.http_proxy import Forward, Message, Rule
from lab.chaos.node_faults import behind

Response = dict[str, Any]
_MEGABYTE = 2**20
_DEPTH = 100_000
_SECONDS = 2.0
_BLOCKS = 50
_NONSENSE: tuple[Any, ...] = (
    7,
    -1,
    1.5,
    True,
    "",
    "0x",
    "-0x5",
    "0xzz",
    "0x" + "f" * 64,
    [],
    [[]],
    {},
    {"a": None},
)


def _missing(answer: Response, rng: random.Random) -> str:
    inside = answer.get("result")
    target = inside if isinstance(inside, dict) and inside and rng.random() < 0.7 else answer
    target.pop(rng.choice([name for name in target if name != "id"]))
    return json.dumps(answer)


def _with(answer: Response, rng: random.Random, value: Any) -> str:
    """Put a value in place of the result, or of one of its members."""
    inside = answer.get("result")
    if isinstance(inside, dict) and inside and rng.random() < 0.7:
        inside[rng.choice(list(inside))] = value
    else:
        answer.pop("error", None)
        answer["result"] = value
    return json.dumps(answer)


def _deep(answer: Response, _: random.Random) -> str:
    return json.dumps({"id": answer["id"], "result": "?"}).replace('"?"', "[" * _DEPTH + "]" * _DEPTH)


def _huge(answer: Response, rng: random.Random) -> str:
    text = rng.choice(["0x" + "ab" * 4 * _MEGABYTE, [[]] * _MEGABYTE])
    fields = {"code": -32000, "message": "x" * 8 * _MEGABYTE}
    return json.dumps(
        rng.choice([{"id": answer["id"], "error": fields}, {"id": answer["id"], "result": text}])
    )


def _wrong_id(answer: Response, rng: random.Random) -> str:
    return json.dumps({**answer, "id": rng.choice([[1], {}, None, "0", 99_999, -1, True, 0.5])})


# A mutation of one response, as JSON.
ANSWERS: dict[str, Callable[[Response, random.Random], str]] = {
    "missing": _missing,
    "null": lambda answer, rng: _with(answer, rng, None),
    "wrong type": lambda answer, rng: _with(answer, rng, rng.choice(_NONSENSE)),
    "huge": _huge,
    "deep": _deep,
    "wrong id": _wrong_id,
    "error without a code": lambda answer, _: json.dumps({"id": answer["id"], "error": "no"}),
    "header not found": lambda answer, _: json.dumps(
        {"id": answer["id"], "error": {"code": -32000, "message": "header not found"}}
    ),
}
# A mutation of the whole body; None cuts the connection.
BODIES: dict[str, Callable[[bytes, random.Random], bytes | None]] = {
    "truncated": lambda body, rng: body[: rng.randrange(len(body))],
    "html": lambda _, __: b"<html><body>Bad gateway</body></html>",
    "brackets": lambda _, __: b"[" * 2 * _DEPTH,
    "no batch": lambda _, __: b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}',
    "cut": lambda _, __: None,
}
# Mutations of the whole exchange: a late response, and the response of a node that is some blocks behind.
SLOW, OTHER_HEIGHT = "slow", "other height"
KINDS = (SLOW, OTHER_HEIGHT, *ANSWERS, *BODIES)


class Mutations:
    """The rule of a proxy that mutates a share of the responses; counts them by kind and method."""

    def __init__(self, rng: random.Random, *, share: float, kinds: tuple[str, ...] = KINDS) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self._rng, self._share, self._kinds = rng, share, kinds

    @property
    def rule(self) -> Rule:
        """The rule for a proxy."""

        async def rule(request: Message, forward: Forward) -> Message | None:
            if self._rng.random() >= self._share:
                return await forward(request)
            kind, calls = self._rng.choice(self._kinds), request.calls
            place = self._rng.randrange(len(calls))
            self.counts[kind, calls[place]["method"]] += 1
            if kind == OTHER_HEIGHT:
                return await behind(request, forward, self._rng.randint(1, _BLOCKS))
            answered = await forward(request)
            if kind == SLOW:
                await asyncio.sleep(self._rng.uniform(0, _SECONDS))
                return answered
            return self._mutated(kind, place, answered)

        return rule

    def _mutated(self, kind: str, place: int, answered: Message) -> Message | None:
        if kind in BODIES:
            body = BODIES[kind](answered.body, self._rng)
            return None if body is None else _message(body)
        results = sorted(answered.calls, key=lambda one: int(one["id"]))
        texts = [json.dumps(one) for one in results]
        texts[place] = ANSWERS[kind](results[place], self._rng)
        return _message(f"[{','.join(texts)}]".encode())


def _message(body: bytes) -> Message:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    return Message(head.encode(), body)
