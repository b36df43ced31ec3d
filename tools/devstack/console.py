"""Output on the terminal."""

import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

_silent = threading.Event()


def echo(text: str) -> None:
    """Print a line and flush it, also into a pipe."""
    if not _silent.is_set():
        print(text, flush=True)


def echo_error(text: str) -> None:
    """Print a line on the error stream."""
    if not _silent.is_set():
        print(text, file=sys.stderr, flush=True)


def mute() -> None:
    """Print nothing from now on: during shutdown, threads would report only its consequences."""
    _silent.set()


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table: the first column aligned left, the others right."""
    first, *others = ("| " + " | ".join(map(str, cells)) + " |" for cells in (head, *rows))
    return "\n".join([first, "|---|" + "---:|" * (len(head) - 1), *others])


@contextmanager
def step(text: str) -> Iterator[None]:
    """Print a step when it starts, and its seconds when it ends, unless a signal ends it."""
    started = time.monotonic()
    echo(f"  … {text}")
    try:
        yield
    except Exception:
        echo(f"  ✗ {text} failed after {time.monotonic() - started:.1f} s")
        raise
    echo(f"  ✓ {text} ({time.monotonic() - started:.1f} s)")
