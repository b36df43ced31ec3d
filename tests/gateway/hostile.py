"""Requests that are valid but for one part, which has a value that is hard to handle."""

import copy
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from tests.examples import examples_in, resolved

JSON = "application/json"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT", "BREW")
_DEEP: Any = json.loads("[" * 90 + "]" * 90)
# Written as JSON, where NaN, infinities and halves of surrogate pairs have a form as well.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 2**64, 2**128, 2**256, 10**400),
    *(0.5, -0.0, 1e308, 1e-308, 2550.0, float("nan"), float("inf"), float("-inf")),
    *(
        "",
        " ",
        "\0",
        "a\0b",
        "\ud800",
        "x\udfff",
        "\ud83d",
        "\x1b[2J",
        "\r\nX: y",
        "\u202e",
        "é" * 300,
        "x" * 70_000,
    ),
    *(
        "-1",
        "0x",
        "0x0",
        "0xZZ",
        "１２",
        "٣",
        "1e5",
        "NaN",
        "null",
        "1_0",
        "+1",
        "٠x٠",
        "%00",
        "' OR 1=1 --",
        "{{7*7}}",
    ),
    *(
        "0x" + "ff" * 20,
        "0x" + "g" * 40,
        "0x" + "00" * 32,
        "0x" + "f" * 64,
        "a@b",
        "a@\u00e9.é",
        "https://[::1",
        "//x",
    ),
    *([], [[]], [None], ["\ud800"], {}, {"": ""}, {"\0": 1}, {"__proto__": None}, _DEEP),
)
# What HTTP can carry: bytes, which a server passes on as latin-1.
TEXTS: tuple[str, ...] = (
    *(text.encode("utf-8", "surrogatepass").decode("latin-1") for text in VALUES if isinstance(text, str)),
    *("\xff", "\xe9", "ac\xe9", ",", ";", '"', "=", "\t", "a, b", "x" * 5_000),
)
BODIES: tuple[bytes, ...] = (
    *(
        b"",
        b" ",
        b"null",
        b"true",
        b"1",
        b'""',
        b"[]",
        b"{",
        b"{}x",
        b'{"a":1,"a":2}',
        b"\xef\xbb\xbf{}",
        b"\xff\xfe{}",
    ),
    *(
        b"NaN",
        b'{"a":1e999}',
        b'{"a":"\xff"}',
        b'{"a":"\xed\xa0\x80"}',
        b"[" * 50_000,
        b'{"a":' * 20_000,
        b"1" * 9_000,
    ),
    *(b'{"\\ud800":1}', b'{"\\u0000":1}', b"\0", b"a=1&b=2", b"--x\r\n"),
)
HEADERS: tuple[str, ...] = (
    *("Authorization", "Idempotency-Key", "Relay-Quote", "Relay-Sponsor", "Relay-Sponsor-Fallback"),
    *(
        "Relay-Sponsor-Voucher",
        "Content-Type",
        "Accept",
        "Accept-Language",
        "Origin",
        "Referer",
        "User-Agent",
    ),
    *("Cookie", "Host", "X-Forwarded-For", "X-Forwarded-Proto", "X-Request-Id", "Traceparent", "Range"),
)


@dataclass(frozen=True)
class Hostile:
    """A request: `path` is quoted, a `body` is bytes, and headers are latin-1 text."""

    operation: str
    part: str
    method: str
    path: str
    body: bytes = b""
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


def requests(description: Any, existing: Mapping[str, list[str]]) -> Iterator[Hostile]:
    """Yield a request for each part of each operation; `existing` has values that lead further, by parameter."""
    for path, operations in description["paths"].items():
        for method in random.sample(METHODS, 3):
            yield Hostile(path, "method", method, _path(path, existing))
        for method, operation in operations.items():
            yield from _of_operation(description, path, method.upper(), operation, existing)


def _of_operation(
    description: Any, path: str, method: str, operation: Any, existing: Mapping[str, list[str]]
) -> Iterator[Hostile]:
    valid = Hostile(f"{method} {path}", "", method, _path(path, existing))
    content = operation.get("requestBody", {}).get("content", {}).get(JSON)
    if content is not None:
        schema = resolved(description, content["schema"])
        example = random.choice(examples_in(description, content) or [_minimal(description, schema)])
        valid = replace(valid, body=_written(example))
        for pointer in _pointers(description, schema, example):
            value = random.choice(VALUES)
            yield replace(
                valid, part=f"body {pointer} {value!r:.60}", body=_written(_with(example, pointer, value))
            )
        raw = random.choice(BODIES)
        yield replace(valid, part=f"body {raw[:40]!r}", body=raw)
    for parameter in (resolved(description, one) for one in operation.get("parameters", [])):
        name, text = parameter["name"], random.choice(TEXTS)
        part = f"{parameter['in']} {name} {text!r:.60}"
        if parameter["in"] == "path":
            hostile = quote(text.encode("latin-1"), safe="")
            yield replace(valid, part=part, path=_path(path, existing, {name: hostile}))
        if parameter["in"] == "query":
            twice = random.choice(["", f"&{name}=1", f"&{name}[]=2"])
            yield replace(valid, part=part, query=f"{name}={quote(text.encode('latin-1'))}{twice}")
    yield replace(
        valid, part="query", query=random.choice(["%", "%ff=%fe", "a&=b&&", "%00=1", "x=" + "y" * 5_000])
    )
    header, text = random.choice(HEADERS), random.choice(TEXTS)
    yield replace(valid, part=f"header {header} {text!r:.60}", headers={header: text})


def _path(path: str, existing: Mapping[str, list[str]], hostile: Mapping[str, str] | None = None) -> str:
    """Return the path with its parameters filled in."""
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    usual = {name: quote(random.choice(existing.get(name, ["1"])), safe="") for name in names}
    return path.format(**usual | dict(hostile or {}))


def _minimal(description: Any, schema: Any) -> dict[str, Any]:
    """Return a body of the right members, with texts where nothing else is known."""
    kinds = {"string": "text", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
    members = {name: resolved(description, member) for name, member in schema.get("properties", {}).items()}
    return {name: kinds.get(str(member.get("type")), "text") for name, member in members.items()}


def _pointers(description: Any, schema: Any, example: Any) -> Iterator[tuple[str | int, ...]]:
    """Yield the place of every member that the schema or the example has, and of one that neither has."""
    schema = resolved(description, schema)
    inner = dict(schema.get("properties", {}))
    for part in schema.get("allOf", []):
        inner |= resolved(description, part).get("properties", {})
    sent = example if isinstance(example, dict) else {}
    for name in {**inner, **sent, "unknown": None}:
        yield (name,)
        for pointer in _pointers(description, inner.get(name) or {}, sent.get(name)) if name in sent else ():
            if isinstance(sent[name], dict):
                yield (name, *pointer)
        if isinstance(sent.get(name), list) and sent[name]:
            yield (name, 0)


def _with(example: Any, pointer: tuple[str | int, ...], value: Any) -> Any:
    body = copy.deepcopy(example)
    place = body
    for name in pointer[:-1]:
        place = place[name]
    place[pointer[-1]] = value
    return body


def _written(body: Any) -> bytes:
    return json.dumps(body).encode()
