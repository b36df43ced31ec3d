"""How the journey holds one figure against another, at once or as soon as they agree."""

import time
from collections.abc import Callable

_PAUSE_SECONDS = 0.1


class Mismatch(AssertionError):
    """The service contradicts the chain, the payment provider, its contract or itself."""


def expect(what: str, found: object, wanted: object) -> None:
    """Raise `Mismatch` unless both are equal."""
    if found != wanted:
        raise Mismatch(f"{what} is {found!r}, not {wanted!r}")


def until(what: str, read: Callable[[], object], wanted: object, *, patience: float) -> None:
    """Return once what is read is what is wanted; raise `Mismatch` when it still is not after `patience` seconds."""
    deadline = time.monotonic() + patience
    while (found := read()) != wanted:
        if time.monotonic() > deadline:
            raise Mismatch(f"{what} is {found!r} even after {patience:.0f} s, not {wanted!r}")
        time.sleep(_PAUSE_SECONDS)
