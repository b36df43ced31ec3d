"""One request and its answer."""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from devstack.stripe.wire.forms import Form, read_form


@dataclass(frozen=True)
class Request:
    """What a client sent; header names are in lower case."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes

    @property
    def form(self) -> Form:
        """The parameters, from the query and the body."""
        form = read_form(self.query)
        form.update(read_form(self.body.decode(errors="replace")))
        return form

    @property
    def query_texts(self) -> dict[str, str]:
        """The plain texts in the query."""
        return dict(parse_qsl(self.query))

    @property
    def key(self) -> str:
        """The API key, from the bearer authorization."""
        return self.headers.get("authorization", "").removeprefix("Bearer ").strip()

    @property
    def idempotency_key(self) -> str | None:
        """The key that names this operation; only a POST has one."""
        return self.headers.get("idempotency-key") if self.method == "POST" else None


@dataclass(frozen=True)
class Response:
    """What the double answers: JSON, text, or a connection that breaks off without an answer."""

    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)
    broken_off: bool = False
    content_type: str = "application/json"
