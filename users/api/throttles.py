"""How often a caller may try to sign in. Without a counter nobody may: a sign-in is not to be guessed."""

from rest_framework.request import Request
from rest_framework.views import APIView

from gateway.common.fields import checksum
from gateway.common.http import RateLimit, client_ip


class NonceRate(RateLimit):
    """Challenges per network address."""

    setting = "AUTH_NONCE_RATE"
    fails_closed = True

    def identify(self, request: Request, view: APIView) -> str | None:
        return client_ip(request)


class NonceAddressRate(RateLimit):
    """Challenges per profile, whoever asks."""

    setting = "AUTH_NONCE_RATE"
    fails_closed = True

    def identify(self, request: Request, view: APIView) -> str | None:
        claimed = request.data.get("address") if isinstance(request.data, dict) else None
        try:
            return f"profile:{checksum(claimed)}" if isinstance(claimed, str) else None
        except ValueError:
            # The serializer refuses it; there is no profile to count.
            return None


class VerifyRate(RateLimit):
    """Answers to challenges per network address."""

    setting = "AUTH_VERIFY_RATE"
    fails_closed = True

    def identify(self, request: Request, view: APIView) -> str | None:
        return client_ip(request)


class RefreshRate(RateLimit):
    """Exchanges of refresh tokens per network address."""

    setting = "AUTH_REFRESH_RATE"
    fails_closed = True

    def identify(self, request: Request, view: APIView) -> str | None:
        return client_ip(request)
