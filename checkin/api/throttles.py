"""How often a user may ask."""

from gateway.common.rates import RateLimit


class CheckInRate(RateLimit):
    """Check-in requests per user; the attempts of the day limit what can be won, this limits the work."""

    setting = "CHECKIN_RATE"
