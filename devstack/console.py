"""What a person at the terminal sees while the stack comes up."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


def say(text: str) -> None:
    """Print one line at once, also when the output is a pipe."""
    print(text, flush=True)


@contextmanager
def step(text: str) -> Iterator[None]:
    """Announce a piece of work before it starts and print its seconds when it ends."""
    started = time.monotonic()
    say(f"  … {text}")
    try:
        yield
    except BaseException:
        say(f"  ✗ {text} failed after {time.monotonic() - started:.1f} s")
        raise
    say(f"  ✓ {text} ({time.monotonic() - started:.1f} s)")


def complain(text: str) -> None:
    """Print one line on the error stream."""
    print(text, file=sys.stderr, flush=True)
