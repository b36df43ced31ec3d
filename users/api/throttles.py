"""How often a caller may read, and try to sign in. Without a counter nobody signs in: that is not to be guessed."""

from rest_framework.request import Request
from rest_framework.views import APIView

from gateway.common.callers import client_network
from gateway.common.http import RateLimit


class DashboardRate(RateLimit):
    """Dashboards and histories per user."""

    setting = "DASHBOARD_RATE"


class NonceRate(RateLimit):
    """
    Challenges per network address.

    Not per profile: a name that anybody can type is nothing to count by, for
    strangers could then use up what its holder needs.
    """

    setting = "AUTH_NONCE_RATE"
    fails_closed = True

    def identify(self, request: Request, view: APIView) -> str | None:
        return client_network(request)


class VerifyRate(RateLimit):
    """Answers to challenges per network address."""

    setting = "AUTH_VERIFY_RATE"
    fails_closed = True

    def identify(self, request: Request, view: APIView) -> str | None:
        return client_network(request)


class RefreshRate(RateLimit):
    """Exchanges of refresh tokens per network address."""

    setting = "AUTH_REFRESH_RATE"
    fails_closed = True

    def identify(self, request: Request, view: APIView) -> str | None:
        return client_network(request)
