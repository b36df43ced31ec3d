"""Sign in with a profile, refresh the session, end it, and read who is signed in."""

from typing import Any
from uuid import UUID

from django.utils.crypto import salted_hmac
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.viewsets import ViewSet

from gateway.common.clock import now
from gateway.common.http import PRIVATE, client_network, client_site, origin_of
from gateway.web.routers import ApiRouter
from gateway.web.serializers import rendered
from gateway.web.throttling import network_rate
from users import queries
from users.api import schema, serializers
from users.api.authentication import ProfileRequest
from users.keys import public_key_set
from users.models import SignInSession
from users.services import sessions, sign_in

# Callers are not signed in yet, so an expired access token must not cause an error.
_PUBLIC: dict[str, Any] = {"authentication_classes": (), "permission_classes": (AllowAny,)}
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


class SignInViewSet(ViewSet):
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
    # Not limited per profile, because anyone can send an address and could use up its owner's rate limit.
    @action(detail=False, methods=["post"], throttle_classes=(network_rate("AUTH_NONCE_RATE"),), **_PUBLIC)
    def nonce(self, request: Request) -> Response:
        body = serializers.NonceRequestSerializer.read(request.data)
        challenge = sign_in.request_challenge(
            profile_address=body["address"], client=_client(request), site=_site(request), now=now()
        )
        return _response(serializers.NonceResponseSerializer, challenge)

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
    @action(detail=False, methods=["post"], throttle_classes=(network_rate("AUTH_VERIFY_RATE"),), **_PUBLIC)
    def verify(self, request: Request) -> Response:
        body = serializers.VerifyRequestSerializer.read(request.data)
        pair = sign_in.sign_in(
            nonce=body["nonce"],
            signature=body["signature"],
            profile_address=body["address"],
            client=_client(request),
            now=now(),
            origin=origin_of(request),
        )
        return _response(serializers.TokenPairResponseSerializer, pair)

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
    @action(detail=False, methods=["post"], throttle_classes=(network_rate("AUTH_REFRESH_RATE"),), **_PUBLIC)
    def refresh(self, request: Request) -> Response:
        body = serializers.RefreshRequestSerializer.read(request.data)
        pair = sessions.refresh(token=body["refresh"], now=now())
        return _response(serializers.TokenPairResponseSerializer, pair)

    @extend_schema(
        operation_id="authLogout",
        tags=["sign-in"],
        summary="Sign out",
        description=schema.LOGOUT_DESCRIPTION,
        request=serializers.LogoutRequestSerializer,
        responses={200: serializers.LogoutResponseSerializer, **schema.LOGOUT},
        examples=schema.LOGOUT_EXAMPLES,
    )
    @action(detail=False, methods=["post"])
    def logout(self, request: ProfileRequest) -> Response:
        body = serializers.LogoutRequestSerializer.read(request.data)
        session = request.auth.session
        sessions.sign_out(
            user_id=request.user.pk,
            session_id=session.pk if session else None,
            token=body["refresh"],
            now=now(),
        )
        return Response({"signedOut": True}, headers=PRIVATE)

    @extend_schema(
        operation_id="authMe",
        tags=["sign-in"],
        summary="Read the current session",
        description=schema.ME_DESCRIPTION,
        responses={200: serializers.MeResponseSerializer, **schema.ME},
        examples=schema.ME_EXAMPLES,
    )
    @action(detail=False)
    def me(self, request: ProfileRequest) -> Response:
        return _response(serializers.MeResponseSerializer, request.auth)


class SessionViewSet(ViewSet):
    @extend_schema(
        operation_id="authSessions",
        tags=["sign-in"],
        summary="List the profile's sessions",
        description=schema.SESSIONS_DESCRIPTION,
        responses={200: serializers.SessionsResponseSerializer, **schema.ME},
        examples=schema.SESSIONS_EXAMPLES,
    )
    @action(detail=False)
    def sessions(self, request: ProfileRequest) -> Response:
        rows = queries.sessions_of(user_id=request.user.pk, now=now())
        current = request.auth.session
        body = rendered(serializers.SessionsResponseSerializer, {"sessions": rows}, current=current)
        return Response(body, headers=PRIVATE)

    @extend_schema(
        operation_id="authLogoutEverywhere",
        tags=["sign-in"],
        summary="Sign out everywhere",
        description=schema.LOGOUT_EVERYWHERE_DESCRIPTION,
        responses={200: serializers.SessionsEndedResponseSerializer, **schema.ME},
        examples=schema.LOGOUT_EVERYWHERE_EXAMPLES,
    )
    @sessions.mapping.delete
    def logout_everywhere(self, request: ProfileRequest) -> Response:
        ended = sessions.end_all(user_id=request.user.pk, reason=SignInSession.Reason.SIGNED_OUT, now=now())
        return Response({"sessionsEnded": ended}, headers=PRIVATE)

    @extend_schema(
        operation_id="authEndSession",
        tags=["sign-in"],
        summary="End one session",
        description=schema.END_SESSION_DESCRIPTION,
        parameters=[OpenApiParameter("session_id", UUID, OpenApiParameter.PATH)],
        responses={200: serializers.SessionsEndedResponseSerializer, **schema.SESSION},
        examples=schema.END_SESSION_EXAMPLES,
    )
    @action(detail=False, methods=["delete"], url_path=f"sessions/(?P<session_id>{_UUID})")
    def end_session(self, request: ProfileRequest, session_id: str) -> Response:
        ended = sessions.end_own(user_id=request.user.pk, session_id=UUID(session_id), now=now())
        return Response({"sessionsEnded": int(ended)}, headers=PRIVATE)


class KeySetViewSet(ViewSet):
    @extend_schema(
        operation_id="jwks",
        tags=["sign-in"],
        summary="The keys that verify access tokens",
        description=schema.KEYS_DESCRIPTION,
        auth=[],
        responses={200: serializers.KeySetResponseSerializer, **schema.KEYS},
        examples=schema.KEYS_EXAMPLES,
    )
    @action(detail=False, url_path=r"jwks\.json", **_PUBLIC)
    def jwks(self, request: Request) -> Response:
        return Response(public_key_set(), headers={"Cache-Control": "public, max-age=300"})


def _response(serializer_class: type[Serializer[Any]], instance: object) -> Response:
    return Response(rendered(serializer_class, instance), headers=PRIVATE)


def _client(request: Request) -> str:
    """Return a keyed digest of the client's network address."""
    return _digest(client_network(request))


def _site(request: Request) -> str:
    return _digest(client_site(request))


def _digest(network: str) -> str:
    return salted_hmac("users.challenge.client", network, algorithm="sha256").hexdigest()


router = ApiRouter()
router.register("api/auth", SignInViewSet, basename="auth")
router.register("api/auth", SessionViewSet, basename="auth-sessions")
router.register(r"\.well-known", KeySetViewSet, basename="well-known")
urlpatterns = router.urls
