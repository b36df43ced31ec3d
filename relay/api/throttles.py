"""How often a user may relay and read."""

from gateway.common.http import RateLimit


class ExecuteRate(RateLimit):
    """Relay calls per user; the hold limits the spend, this limits the work."""

    setting = "RELAY_EXECUTE_RATE"


class ReadRate(RateLimit):
    """Quota and status readings per user."""

    setting = "RELAY_READ_RATE"
