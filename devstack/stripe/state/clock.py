"""The account's time: it runs as the real one does, and jumps forward when told to."""

import time

from devstack.stripe.state.store import Store

_KIND, _ID = "_clock", "clock"


class Clock:
    """Seconds since 1970, as far from the real ones as it was moved; a restart keeps the distance."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._standing: int | None = None

    def now(self) -> int:
        """Return the present second."""
        if self._standing is not None:
            return self._standing
        return int(time.time() + self._offset)

    def stand_at(self, moment: int) -> None:
        """Stop at the moment until told to run."""
        self._standing = moment

    def run(self) -> None:
        """Run on as before the stop."""
        self._standing = None

    def run_from(self, moment: int) -> None:
        """Run on from the moment."""
        with self._store.unit():
            kept = self._store.get(_KIND, _ID) or self._store.add({"object": _KIND, "id": _ID})
            kept["offset"] = moment - time.time() + 0.001
        self._standing = None

    @property
    def _offset(self) -> float:
        kept = self._store.get(_KIND, _ID)
        return float(kept["offset"]) if kept else 0.0
