"""How often a user may relay and read."""

from gateway.common.rates import RateLimit


class ExecuteRate(RateLimit):
    """Relay calls per user; the hold limits the spend, this limits the work."""

    setting = "RELAY_EXECUTE_RATE"


class ReadRate(RateLimit):
    """Readings of quota and status per user, counted with those of the ad networks."""

    setting = "RELAY_READ_RATE"
