"""
The API keys of a sponsor's servers.

GET and POST /api/sponsors/{name}/keys, DELETE /api/sponsors/{name}/keys/{key}, POST …/keys/{key}/rotate.
"""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.common import clock
from gateway.common.errors import NotFound
from gateway.common.http import PRIVATE, is_bounded, normal_network
from gateway.common.problems import BODY_ERRORS, problem_responses
from gateway.web.serializers import BodySerializer, rendered
from sponsors.api.access import FAULTS, SponsorViewSet
from sponsors.errors import TooManyKeys
from sponsors.models import ApiKey
from sponsors.rules.rights import SCOPES
from sponsors.services import keys

_MOST_NETWORKS = 20
_SCOPES = (
    "`read` allows reading everything, `simulate` simulating calls, `create` having the "
    "sponsor pay for new profiles, `manage` using funds."
)
_ONE = r"keys/(?P<key>[0-9]{1,18})"


class KeyRequestSerializer(BodySerializer):
    name = serializers.CharField(max_length=40, help_text="The key's purpose.")
    scopes = serializers.MultipleChoiceField(
        choices=[scope.value for scope in SCOPES], allow_empty=False, help_text=_SCOPES
    )
    networks = serializers.ListField(
        child=serializers.CharField(max_length=43),
        max_length=_MOST_NETWORKS,
        required=False,
        default=list,
        help_text="IP addresses or networks from which the key is accepted; empty: anywhere.",
    )

    def validate_networks(self, texts: list[str]) -> list[str]:
        """Return the networks in canonical form."""
        try:
            networks = [normal_network(text.strip()) for text in texts]
        except ValueError as error:
            raise serializers.ValidationError("Send addresses or networks such as 192.0.2.0/24.") from error
        if not all(map(is_bounded, networks)):
            raise serializers.ValidationError("A network is too large. Send smaller ones.")
        return networks


class KeySerializer(serializers.Serializer[Any]):
    """A valid key. Its text was shown only when it was created."""

    key = serializers.IntegerField(source="pk", help_text="Its number.")
    name = serializers.CharField()
    hint = serializers.CharField(help_text="The last characters of the key's text.")
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=[scope.value for scope in SCOPES]))
    networks = serializers.ListField(child=serializers.CharField())
    createdAt = serializers.DateTimeField(source="created_at")
    createdBy = serializers.SerializerMethodField(
        help_text="Profile or e-mail address of the member who made the key, and with whose membership it ends."
    )
    expiresAt = serializers.DateTimeField(
        source="expires_at", allow_null=True, help_text="Set when the key is rotated."
    )
    lastUsedAt = serializers.DateTimeField(
        source="last_used_at", allow_null=True, help_text="Accurate to the hour."
    )

    def get_createdBy(self, row: ApiKey) -> str | None:  # noqa: N802 (the name on the wire)
        return keys.maker_of(row)


class KeysSerializer(serializers.Serializer[Any]):
    keys = KeySerializer(many=True)


class NewKeySerializer(serializers.Serializer[Any]):
    """A new key."""

    secret = serializers.CharField(source="text", help_text="Shown only once; the service stores its hash.")
    key = KeySerializer(source="row")


class KeyViewSet(SponsorViewSet):
    @extend_schema(
        operation_id="sponsorKeys",
        tags=["sponsors"],
        summary="List the API keys of a sponsor",
        responses={200: KeysSerializer, **problem_responses(*FAULTS)},
    )
    @action(detail=False, url_path="keys")
    def keys(self, request: Request, name: str) -> Response:
        return self._keys()

    @extend_schema(
        operation_id="createSponsorKey",
        tags=["sponsors"],
        summary="Create an API key",
        description="For members with the right `manage`. API keys cannot create keys.",
        request=KeyRequestSerializer,
        responses={200: NewKeySerializer, **problem_responses(*BODY_ERRORS, *FAULTS, TooManyKeys)},
        examples=[
            OpenApiExample(
                "For a server", value={"name": "server", "scopes": ["read", "simulate"]}, request_only=True
            )
        ],
    )
    @keys.mapping.post
    def create_key(self, request: Request, name: str) -> Response:
        actor = self.access.person()
        body = KeyRequestSerializer.read(request.data)
        new = keys.create(
            sponsor=self.access.sponsor,
            name=body["name"],
            scopes=sorted(body["scopes"]),
            networks=body["networks"],
            actor=actor,
            now=clock.now(),
        )
        return Response(rendered(NewKeySerializer, new), headers=PRIVATE)

    @extend_schema(
        operation_id="rotateSponsorKey",
        tags=["sponsors"],
        summary="Replace an API key",
        description="The new key has the same name, rights and networks. The old one keeps working for 24 hours.",
        request=None,
        responses={200: NewKeySerializer, **problem_responses(*FAULTS, TooManyKeys)},
    )
    @action(detail=False, methods=["post"], url_path=f"{_ONE}/rotate")
    def rotate(self, request: Request, name: str, key: str) -> Response:
        new = keys.rotate(key=self._key(key), actor=self.access.person(), now=clock.now())
        return Response(rendered(NewKeySerializer, new), headers=PRIVATE)

    @extend_schema(
        operation_id="revokeSponsorKey",
        tags=["sponsors"],
        summary="Revoke an API key",
        description="The key is refused from the next request on.",
        request=None,
        responses={200: KeysSerializer, **problem_responses(*FAULTS)},
    )
    @action(detail=False, methods=["delete"], url_path=_ONE)
    def revoke(self, request: Request, name: str, key: str) -> Response:
        keys.revoke(key=self._key(key), actor=self.access.person(), now=clock.now())
        return self._keys()

    def _key(self, number: str) -> ApiKey:
        self.access.person()
        key = keys.working(self.access.sponsor, now=clock.now()).filter(pk=int(number)).first()
        if key is None:
            raise NotFound("The sponsor has no such key.")
        return key

    def _keys(self) -> Response:
        rows = keys.working(self.access.sponsor, now=clock.now())
        return Response(rendered(KeysSerializer, {"keys": rows}), headers=PRIVATE)
