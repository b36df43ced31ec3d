"""What the adapter sends to Stripe: each request with its response, and the lines of the adapter that ran."""

import ast
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any
from urllib.parse import urlsplit

import stripe


@dataclass(frozen=True)
class Exchange:
    """A request of the adapter and the response."""

    method: str
    path: str
    query: str
    body: str
    status: int
    answer: Any

    @property
    def parameters(self) -> str:
        return self.body or self.query


class RecordingClient(stripe.RequestsClient):
    """The SDK's HTTP client, which keeps every request with its response."""

    def __init__(self) -> None:
        super().__init__(timeout=30)
        self.exchanges: list[Exchange] = []

    def request(
        self, method: str, url: str, headers: Any, post_data: Any = None, *more: Any, **options: Any
    ) -> Any:
        content, status, answered = super().request(method, url, headers, post_data, *more, **options)
        parts = urlsplit(url)
        result = json.loads(content)
        self.exchanges.append(
            Exchange(method.upper(), parts.path, parts.query, post_data or "", status, result)
        )
        return content, status, answered


class Services:
    """The SDK's services, which note the name of each of their methods that is called, such as `refunds.create`."""

    def __init__(self, inner: Any, called: set[str], name: str = "") -> None:
        self._inner, self._called, self._name = inner, called, name

    def __getattr__(self, name: str) -> Any:
        value, full = getattr(self._inner, name), f"{self._name}.{name}".lstrip(".")
        if not callable(value):
            return Services(value, self._called, full)

        def call(*arguments: Any, **options: Any) -> Any:
            self._called.add(full)
            return value(*arguments, **options)

        return call


def methods_in(*modules: ModuleType) -> set[str]:
    """Return the names of the SDK's methods, or services, that these modules use below `self._v1`."""
    names: set[str] = set()
    for module in modules:
        for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text())):
            text = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
            if text.startswith("self._v1.") and "(" not in text:
                names.add(text.removeprefix("self._v1."))
    return {name for name in names if not any(other.startswith(f"{name}.") for other in names)}


class Lines:
    """The lines of some modules that ran in this thread."""

    def __init__(self, *modules: ModuleType) -> None:
        self._ran: dict[str, set[int]] = {str(module.__file__): set() for module in modules}

    @contextmanager
    def traced(self) -> Iterator[None]:
        """Note each line that runs during the block."""
        sys.settrace(self._trace)
        try:
            yield
        finally:
            sys.settrace(None)

    def missed(self) -> list[str]:
        """Return the statements of functions that did not run and may send a request, as `file:line: text`."""
        return [
            f"{Path(file).name}:{node.lineno}: {ast.unparse(node).splitlines()[0]}"
            for file, ran in self._ran.items()
            for node in _statements(ast.parse(Path(file).read_text()))
            if not ran & set(range(node.lineno, _header_end(node) + 1))
        ]

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        ran = self._ran.get(frame.f_code.co_filename)
        if ran is None:
            return None
        ran.add(frame.f_lineno)
        return self._trace


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements inside functions; `raise`, `pass` and an empty `return` send nothing."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for node in _inside(function.body):
                if not isinstance(node, ast.Raise | ast.Pass) and not _is_docstring(node):
                    yield node


def _inside(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.FunctionDef):
            continue  # `ast.walk` finds it by itself
        yield node
        for name in ("body", "orelse", "finalbody"):
            yield from _inside(getattr(node, name, []))
        for handler in getattr(node, "handlers", []):
            yield from _inside(handler.body)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _header_end(node: ast.stmt) -> int:
    """Return the last line of a statement without the block that it heads."""
    body = getattr(node, "body", None)
    return body[0].lineno - 1 if body and body[0].lineno > node.lineno else node.end_lineno or node.lineno
