"""How often a caller may read, and try to sign in."""

from gateway.common.rates import NetworkRate, RateLimit


class DashboardRate(RateLimit):
    """Dashboards and histories per user."""

    setting = "DASHBOARD_RATE"


class NonceRate(NetworkRate):
    """
    Challenges per network address.

    Not per profile: a name that anybody can type is nothing to count by, for
    strangers could then use up what its holder needs.
    """

    setting = "AUTH_NONCE_RATE"


class VerifyRate(NetworkRate):
    """Answers to challenges per network address."""

    setting = "AUTH_VERIFY_RATE"


class RefreshRate(NetworkRate):
    """Exchanges of refresh tokens per network address."""

    setting = "AUTH_REFRESH_RATE"
