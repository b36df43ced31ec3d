"""Request and response bodies of sign-in."""

from typing import Any

from rest_framework import serializers

from gateway.web.serializers import AddressField, BodySerializer, HexField
from users.models import SignInSession

# Long enough for signatures that wrap others (ERC-6492), so that they get a specific error.
_MAX_SIGNATURE_BYTES = 8192


class NonceRequestSerializer(BodySerializer):
    address = AddressField(help_text="The Universal Profile that signs in, in any casing.")


class NonceResponseSerializer(serializers.Serializer[Any]):
    nonce = serializers.CharField(help_text="Names the challenge; send it back with the signature.")
    message = serializers.CharField(help_text="The EIP-4361 text to sign, byte for byte.")
    expiresAt = serializers.DateTimeField(source="expires_at", help_text="When the challenge expires.")


class VerifyRequestSerializer(BodySerializer):
    nonce = serializers.CharField(max_length=64, help_text="The `nonce` of the challenge.")
    signature = HexField(
        max_bytes=_MAX_SIGNATURE_BYTES, help_text="`personal_sign` of the message by a controller: 65 bytes."
    )
    address = AddressField(
        required=False,
        allow_null=True,
        default=None,
        help_text="The profile; if sent, it must be the challenge's.",
    )


class TokenPairResponseSerializer(serializers.Serializer[Any]):
    access = serializers.CharField(help_text="For the header `Authorization: Bearer <JWT>`.")
    refresh = serializers.CharField(help_text="For one exchange at `/api/auth/refresh`.")
    expiresIn = serializers.IntegerField(
        source="expires_in_seconds", help_text="Lifetime of `access` in seconds."
    )
    address = AddressField(source="profile_address", help_text="The signed-in profile.")


class RefreshTokenField(serializers.CharField):
    """A refresh token; refuses an access token, since the two are easily confused."""

    default_error_messages = {"access": "This is an access token. Send the refresh token."}

    def to_internal_value(self, data: Any) -> str:
        # Access tokens of any issuer are JSON Web Tokens, which begin with this base64 of `{"`.
        if isinstance(data, str) and data.startswith("eyJ"):
            self.fail("access")
        return super().to_internal_value(data)


class RefreshRequestSerializer(BodySerializer):
    refresh = RefreshTokenField(max_length=128, help_text="The newest refresh token of the session.")


class LogoutRequestSerializer(BodySerializer):
    refresh = RefreshTokenField(
        max_length=128,
        required=False,
        allow_null=True,
        default=None,
        help_text="Another session of yours to end as well.",
    )


class LogoutResponseSerializer(serializers.Serializer[Any]):
    signedOut = serializers.BooleanField(help_text="Always true.")


class MeResponseSerializer(serializers.Serializer[Any]):
    address = AddressField(source="profile_address", help_text="The signed-in profile.")
    controller = AddressField(
        source="session.controller_address",
        allow_null=True,
        help_text="The key that signed in; null for external tokens.",
    )
    sessionId = serializers.UUIDField(
        source="session.pk", allow_null=True, help_text="The session; null for external tokens."
    )
    sessionExpiresAt = serializers.DateTimeField(
        source="session.expires_at",
        allow_null=True,
        help_text="When the session ends; a refresh does not extend it.",
    )
    accessExpiresAt = serializers.DateTimeField(
        source="expires_at", help_text="When this access token expires."
    )
    issuer = serializers.CharField(help_text="The issuer of the access token.")


class SessionResponseSerializer(serializers.Serializer[Any]):
    sessionId = serializers.UUIDField(source="pk")
    controller = AddressField(source="controller_address", help_text="The key that signed in.")
    signedInAt = serializers.DateTimeField(source="created_at")
    refreshedAt = serializers.DateTimeField(
        source="refreshed_at", help_text="When it last received new tokens."
    )
    expiresAt = serializers.DateTimeField(source="expires_at", help_text="When it ends.")
    isCurrent = serializers.SerializerMethodField(
        "is_current", help_text="Whether the access token belongs to this session."
    )

    def is_current(self, session: SignInSession) -> bool:
        return bool(session == self.context["current"])


class SessionsResponseSerializer(serializers.Serializer[Any]):
    sessions = SessionResponseSerializer(many=True, help_text="The most recently used one first.")


class SessionsEndedResponseSerializer(serializers.Serializer[Any]):
    sessionsEnded = serializers.IntegerField(
        help_text="How many sessions this request ended, including its own."
    )


class KeyResponseSerializer(serializers.Serializer[Any]):
    kty = serializers.CharField(help_text="Always `EC`.")
    crv = serializers.CharField(help_text="Always `P-256`.")
    x = serializers.CharField()
    y = serializers.CharField()
    kid = serializers.CharField(help_text="The key id in a token's header; RFC 7638 thumbprint.")
    use = serializers.CharField(help_text="Always `sig`.")
    alg = serializers.CharField(help_text="Always `ES256`.")


class KeySetResponseSerializer(serializers.Serializer[Any]):
    keys = KeyResponseSerializer(many=True)
