"""Keeping the journal small: every few hours, what the chain has used for good and long ago is forgotten."""

import logging
import threading
import time

from signer.service import SigningService
from signer.targets import NodeAway

logger = logging.getLogger(__name__)
_EVERY_SECONDS = 6 * 3600.0


class Pruning(threading.Thread):
    """Looks once at the start and then at intervals, for as long as the process lives."""

    def __init__(self, service: SigningService, *, days: int) -> None:
        super().__init__(name="pruning", daemon=True)
        self._service, self._days = service, days

    def run(self) -> None:
        """Look again and again."""
        while True:
            self.look()
            time.sleep(_EVERY_SECONDS)

    def look(self) -> None:
        """Look once; where the node does not answer, the next time does."""
        try:
            gone = self._service.prune(days=self._days)
        except NodeAway as error:
            logger.warning("the journal is not pruned now: %s", error)
            return
        if gone:
            logger.info("the journal has forgotten %s old entries", gone)
