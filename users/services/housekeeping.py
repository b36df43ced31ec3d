"""What beat tidies up for sign-in."""

import logging
from datetime import datetime

from users.services import challenges, sessions

logger = logging.getLogger(__name__)


def purge(*, now: datetime) -> None:
    """Delete challenges and sessions that ended long ago."""
    logger.info("purged %d challenges and %d sessions", challenges.purge(now=now), sessions.purge(now=now))
