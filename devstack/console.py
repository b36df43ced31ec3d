"""What a person at the terminal sees while the stack comes up."""

import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

_silent = threading.Event()


def echo(text: str) -> None:
    """Print one line at once, also when the output is a pipe."""
    if not _silent.is_set():
        print(text, flush=True)


def echo_error(text: str) -> None:
    """Print one line on the error stream."""
    if not _silent.is_set():
        print(text, file=sys.stderr, flush=True)


def mute() -> None:
    """Print nothing more: a thread that still runs while everything is being stopped reports only that."""
    _silent.set()


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown: words in the first column, numbers in the others."""
    first, *others = ("| " + " | ".join(map(str, cells)) + " |" for cells in (head, *rows))
    return "\n".join([first, "|---|" + "---:|" * (len(head) - 1), *others])


@contextmanager
def step(text: str) -> Iterator[None]:
    """Announce a piece of work before it starts and print its seconds when it ends, unless a signal ends it."""
    started = time.monotonic()
    echo(f"  … {text}")
    try:
        yield
    except Exception:
        echo(f"  ✗ {text} failed after {time.monotonic() - started:.1f} s")
        raise
    echo(f"  ✓ {text} ({time.monotonic() - started:.1f} s)")
