"""The service's own settings as a process reads them from its environment, with patience for a busy Redis."""

from gateway.common import redis_urls

redis_urls.PATIENCE_SECONDS = 60.0

from gateway.settings import *  # noqa: E402, F403
