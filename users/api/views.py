"""
How often a caller may read, and try to sign in.

Sign in with a profile, carry the session on, end it, and read who is signed in.
"""

from typing import Any, cast

from django.utils.crypto import salted_hmac
from django.utils.timezone import now
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from gateway.common.http import client_ip
from gateway.common.throttling import NetworkRate, RateLimit
from users.api import schema, serializers
from users.models import User
from users.services import sessions
from users.services import sign_in as users_sign_in
from users.services.access import AccessGrant
from users.services.sign_in import sign_in
from users.tokens.keys import public_key_set


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


_PRIVATE = {"Cache-Control": "no-store"}


class _Door(APIView):
    """A view for callers who are not signed in yet, so a stale access token does no harm."""

    authentication_classes = ()
    permission_classes = (AllowAny,)


class NonceView(_Door):
    throttle_classes = (NonceRate,)

    @extend_schema(
        operation_id="authNonce",
        tags=["sign-in"],
        summary="Ask for a message to sign",
        description=schema.NONCE_DESCRIPTION,
        auth=[],
        request=serializers.NonceRequestSerializer,
        responses={200: serializers.NonceResponseSerializer, **schema.NONCE},
        examples=schema.NONCE_EXAMPLES,
    )
    def post(self, request: Request) -> Response:
        """Answer the text that a controller of the profile has to sign."""
        asked = _read(serializers.NonceRequestSerializer, request)
        challenge = users_sign_in.issue(profile_address=asked["address"], client=_client(request), now=now())
        return _answer(serializers.NonceResponseSerializer, challenge)


class VerifyView(_Door):
    throttle_classes = (VerifyRate,)

    @extend_schema(
        operation_id="authVerify",
        tags=["sign-in"],
        summary="Sign in with the signed message",
        description=schema.VERIFY_DESCRIPTION,
        auth=[],
        request=serializers.VerifyRequestSerializer,
        responses={200: serializers.TokenPairResponseSerializer, **schema.VERIFY},
        examples=schema.VERIFY_EXAMPLES,
    )
    def post(self, request: Request) -> Response:
        """Answer the tokens of a new session."""
        asked = _read(serializers.VerifyRequestSerializer, request)
        pair = sign_in(
            nonce=asked["nonce"],
            signature=asked["signature"],
            profile_address=asked["address"],
            client=_client(request),
            now=now(),
        )
        return _answer(serializers.TokenPairResponseSerializer, pair)


class RefreshView(_Door):
    throttle_classes = (RefreshRate,)

    @extend_schema(
        operation_id="authRefresh",
        tags=["sign-in"],
        summary="Exchange a refresh token for new tokens",
        description=schema.REFRESH_DESCRIPTION,
        auth=[],
        request=serializers.RefreshRequestSerializer,
        responses={200: serializers.TokenPairResponseSerializer, **schema.REFRESH},
        examples=schema.REFRESH_EXAMPLES,
    )
    def post(self, request: Request) -> Response:
        """Answer the next tokens of the session."""
        asked = _read(serializers.RefreshRequestSerializer, request)
        return _answer(
            serializers.TokenPairResponseSerializer, sessions.carry_on(token=asked["refresh"], now=now())
        )


class LogoutView(APIView):
    @extend_schema(
        operation_id="authLogout",
        tags=["sign-in"],
        summary="Sign out",
        description=schema.LOGOUT_DESCRIPTION,
        request=serializers.LogoutRequestSerializer,
        responses={200: serializers.LogoutResponseSerializer, **schema.LOGOUT},
        examples=schema.LOGOUT_EXAMPLES,
    )
    def post(self, request: Request) -> Response:
        """End the session of the access token."""
        asked = _read(serializers.LogoutRequestSerializer, request)
        user, grant = cast("User", request.user), cast("AccessGrant", request.auth)
        sessions.sign_out(user_id=user.pk, session_id=grant.session_id, token=asked["refresh"], now=now())
        return Response({"signedOut": True}, headers=_PRIVATE)


class MeView(APIView):
    @extend_schema(
        operation_id="authMe",
        tags=["sign-in"],
        summary="Who is signed in",
        description=schema.ME_DESCRIPTION,
        responses={200: serializers.MeResponseSerializer, **schema.ME},
        examples=schema.ME_EXAMPLES,
    )
    def get(self, request: Request) -> Response:
        """Answer what the access token stands for."""
        return _answer(serializers.MeResponseSerializer, request.auth)


class KeysView(_Door):
    @extend_schema(
        operation_id="jwks",
        tags=["sign-in"],
        summary="The keys that verify access tokens",
        description=schema.KEYS_DESCRIPTION,
        auth=[],
        responses={200: serializers.KeySetResponseSerializer, **schema.KEYS},
        examples=schema.KEYS_EXAMPLES,
    )
    def get(self, request: Request) -> Response:
        """Answer the JSON Web Key Set."""
        return Response(public_key_set(), headers={"Cache-Control": "public, max-age=300"})


def _read(shape: type[Serializer[Any]], request: Request) -> dict[str, Any]:
    body = shape(data=request.data)
    body.is_valid(raise_exception=True)
    return cast("dict[str, Any]", body.validated_data)


def _answer(shape: type[Serializer[Any]], found: object) -> Response:
    return Response(shape(found).data, headers=_PRIVATE)


def _client(request: Request) -> str:
    """Return the caller's network address as a digest that only we can compute."""
    return salted_hmac("users.challenge.client", client_ip(request), algorithm="sha256").hexdigest()
