"""
Profiles for newcomers, paid by a sponsor: POST universal-profile, POST …/register, GET universal-profile/{address}.

The first two have the form of LUKSO's relayer API. A sponsor's server sends its API key.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from gateway.chain.config import chain_in, home, on_chain
from gateway.chain.errors import ChainUnknown
from gateway.chain.lsp23 import (
    MOST_CONTROLLERS,
    MOST_DATA_BYTES,
    MOST_METADATA_BYTES,
    PostDeploymentRefused,
)
from gateway.common import clock
from gateway.common.errors import (
    DomainError,
    InvalidRequest,
    NotAuthenticated,
    NotFound,
    PermissionDenied,
    WrongChecksum,
)
from gateway.common.http import PRIVATE
from gateway.common.logging import request_id
from gateway.common.problems import BODY_ERRORS, problem_responses
from gateway.web.idempotency import key_header, key_of
from gateway.web.serializers import (
    AddressField,
    BodySerializer,
    HexField,
    StrictIntegerField,
    rendered,
)
from gateway.web.throttling import user_rate
from relay import errors
from relay.api.schema import SPONSORED
from relay.models import ProfileCreation, RelayStatus
from relay.queries.creations import figures_of
from relay.services import creations
from sponsors.api.access import FAULTS, KeyAuthentication, SponsorViewSet, access_of
from sponsors.api.figures import DAYS, days_in
from sponsors.errors import KeyNetworkRefused, KeyRefused
from sponsors.models import ApiKey, Sponsor
from sponsors.queries.figures import since_of
from sponsors.rules.rights import Right
from sponsors.rules.vouchers import MOST_CHARACTERS, parse
from sponsors.services.keys import UsedKey
from users.errors import AccountInactive, UntrustedCode

_MOST_CHAINS = 20
_ADDRESS = "0x[0-9a-fA-F]{40}"
_ADDRESS_SCHEMA = {"type": "string", "pattern": f"^{_ADDRESS}$"}
_FAULTS = (NotAuthenticated, KeyRefused, KeyNetworkRefused, PermissionDenied)


class ProfileRequestSerializer(BodySerializer):
    """Either the controllers of the new profile, or the salt and the data of its deployment."""

    lsp6ControllerAddress = serializers.ListField(
        child=AddressField(),
        required=False,
        min_length=1,
        max_length=MOST_CONTROLLERS,
        help_text="The controllers. Each gets all permissions but REENTRANCY, SUPER_DELEGATECALL and DELEGATECALL.",
    )
    lsp3Profile = HexField(
        min_bytes=0,
        max_bytes=MOST_METADATA_BYTES,
        required=False,
        allow_null=True,
        help_text="The VerifiableURI of the LSP-3 metadata.",
    )
    salt = HexField(min_bytes=32, max_bytes=32, required=False, help_text="The salt for LSP-23's factory.")
    postDeploymentCallData = HexField(
        min_bytes=1,
        max_bytes=MOST_DATA_BYTES,
        required=False,
        help_text="`abi.encode(bytes32[], bytes[])`: the data keys and values of the new profile.",
    )
    chainIds = serializers.ListField(
        child=StrictIntegerField(min_value=1),
        required=False,
        allow_null=True,
        max_length=_MOST_CHAINS,
        help_text="Further chains that get the same address, besides home. The sponsor needs a policy for each.",
    )
    sponsorVoucher = serializers.CharField(
        required=False,
        allow_null=True,
        max_length=MOST_CHARACTERS,
        help_text="The sponsor's voucher for the new profile, for policies that want one.",
    )

    origin = serializers.CharField(
        required=False,
        default="",
        max_length=100,
        help_text="What stands for the person in the policy's daily number, such as a network address. Only a hash is "
        "stored.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a body of both forms, of none, and one that names another chain."""
        of_data = {"salt", "postDeploymentCallData"} & attrs.keys()
        has_controllers = "lsp6ControllerAddress" in attrs
        if has_controllers == bool(of_data):
            raise serializers.ValidationError(
                "Send `lsp6ControllerAddress`, or `salt` and `postDeploymentCallData`."
            )
        if of_data and len(of_data) == 1:
            raise serializers.ValidationError("Send both `salt` and `postDeploymentCallData`.")
        if of_data and attrs.get("lsp3Profile"):
            raise serializers.ValidationError(
                {"lsp3Profile": "Put the metadata into `postDeploymentCallData`."}
            )
        return attrs


class RegisterSerializer(BodySerializer):
    universalProfileAddress = AddressField(help_text="An existing profile.")


class ControllerSerializer(serializers.Serializer[Any]):
    """A controller of the new profile, and its permissions as LSP-6 encodes them."""

    address = AddressField()
    permissions = serializers.CharField()


class ProfileChainSerializer(serializers.Serializer[Any]):
    """The deployment on one chain."""

    chainId = serializers.IntegerField()
    status = serializers.ChoiceField(choices=RelayStatus.choices)
    transactionHash = serializers.CharField(
        allow_null=True, help_text="Null if the profile existed before, or while it waits for its signature."
    )
    failureCode = serializers.CharField(
        help_text="Empty without a failure; for a further chain also the code of the problem that refused it."
    )
    credits = serializers.IntegerField(
        help_text="What the sponsor pays; until the deployment is settled, the most that it may pay."
    )
    paidBy = serializers.CharField(
        allow_null=True,
        help_text="The sponsor that pays: the requesting one, or the operator's with its welcome policy.",
    )


class FirstCreditsSerializer(serializers.Serializer[Any]):
    """Credits that the new profile gets from the sponsor that pays for its deployment."""

    credits = serializers.IntegerField()
    days = serializers.IntegerField(help_text="For how many days they can be spent.")
    expiresAt = serializers.DateTimeField(
        source="expires_at", allow_null=True, help_text="Null until the profile exists and has them."
    )


class ProfileSerializer(serializers.Serializer[Any]):
    """
    A profile that a sponsor asked for.

    Its status is that of a relay transaction. `ExecutedExternally`: somebody else deployed exactly this profile, or it
    existed before. The first member of `chains` is the home chain; `status` and `transactionHash` are its.
    """

    universalProfileAddress = AddressField()
    keyManagerAddress = AddressField()
    status = serializers.ChoiceField(choices=RelayStatus.choices)
    transactionHash = serializers.CharField(allow_null=True)
    statusPath = serializers.CharField()
    controllers = ControllerSerializer(
        many=True, help_text="Everybody who can act for the profile at first. Empty for a registered one."
    )
    chains = ProfileChainSerializer(many=True)
    firstCredits = FirstCreditsSerializer(allow_null=True, help_text="Null if the profile gets none.")


class MayCreate(BasePermission):
    """Allows API keys with the right `create`."""

    def has_permission(self, request: Request, view: Any) -> bool:
        key: Any = request.auth
        if not isinstance(key, UsedKey):
            return False
        access_of(request, key.row.sponsor.slug).require(Right.CREATE)
        return True


class UniversalProfileViewSet(ViewSet):
    authentication_classes = (KeyAuthentication,)
    permission_classes = (MayCreate,)
    throttle_classes = (user_rate("SPONSOR_CREATE_RATE"),)

    @extend_schema(
        operation_id="createProfile",
        tags=["sponsors"],
        summary="Create a Universal Profile",
        description="The sponsor of the API key pays for the deployment, by its policies for new profiles; if it does "
        "not, the operator's welcome policy may. Equal requests are one: they have the same `Idempotency-Key` or, "
        "without one, the same body. Repeat a request after any failure; at most one profile is deployed and charged.",
        request=ProfileRequestSerializer,
        parameters=[key_header("the same for each repeat, and new for each profile.")],
        responses={
            200: ProfileSerializer,
            **problem_responses(
                *BODY_ERRORS,
                *_FAULTS,
                *SPONSORED,
                WrongChecksum,
                ChainUnknown,
                PostDeploymentRefused,
                UntrustedCode,
                AccountInactive,
                errors.CreationOff,
                errors.CreationKeyUsed,
                errors.OriginMissing,
                errors.OriginUsed,
                errors.DeploymentRefused,
                errors.GasLimitExceeded,
                errors.RelayPaused,
                errors.ChainTakesNoCalls,
                errors.ChainPriceOutdated,
                errors.RelayersBusy,
                errors.RelayersEmpty,
            ),
        },
        examples=[
            OpenApiExample(
                "One controller",
                value={"lsp6ControllerAddress": ["0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf"]},
                request_only=True,
            )
        ],
    )
    @action(detail=False, methods=["post"], url_path="universal-profile")
    def create_profile(self, request: Request) -> Response:
        """Return the new profile's addresses and the hash of the transaction that deploys it."""
        body = ProfileRequestSerializer.read(request.data)
        chain_ids = [chain_in(str(chain_id)) for chain_id in body.get("chainIds") or ()]
        voucher = body.get("sponsorVoucher")
        wanted = creations.Request(
            key=key_of(request),
            controllers=body.get("lsp6ControllerAddress", ()),
            metadata=body.get("lsp3Profile") or b"",
            salt=body.get("salt", b""),
            data=body.get("postDeploymentCallData", b""),
            voucher=parse(voucher) if voucher else None,
            origin=body["origin"],
        )
        asked = partial(
            creations.create,
            sponsor=_sponsor(request),
            request=wanted,
            now=clock.now(),
            request_id=request_id() or "",
            api_key=_key(request),
        )
        rows = [asked()]
        refused = {}
        for chain_id in sorted({*chain_ids} - {home().id}):
            try:
                with on_chain(chain_id):
                    rows.append(asked())
            except DomainError as refusal:
                refused[chain_id] = refusal
        return Response(_body(rows, refused), headers=PRIVATE)

    @extend_schema(
        operation_id="registerProfile",
        tags=["sponsors"],
        summary="Open an account for an existing profile",
        description="The account has no session and no credits: the sponsors that its calls name pay for them. Its "
        "owner signs in later as usual.",
        request=RegisterSerializer,
        responses={
            200: ProfileSerializer,
            **problem_responses(
                *BODY_ERRORS,
                *_FAULTS,
                WrongChecksum,
                AccountInactive,
                errors.ProfileNotThere,
                errors.RegistrationsUsed,
            ),
        },
    )
    @action(detail=False, methods=["post"], url_path="universal-profile/register")
    def register_profile(self, request: Request) -> Response:
        """Return the profile, whose calls the sponsor can pay from now on."""
        profile = RegisterSerializer.read(request.data)["universalProfileAddress"]
        row = creations.register(
            sponsor=_sponsor(request), profile=profile, now=clock.now(), api_key=_key(request)
        )
        return Response(_body([row]), headers=PRIVATE)

    @extend_schema(
        operation_id="requestedProfile",
        tags=["sponsors"],
        summary="Read the status of a profile that the sponsor requested",
        parameters=[OpenApiParameter("address", _ADDRESS_SCHEMA, OpenApiParameter.PATH)],
        responses={
            200: ProfileSerializer,
            **problem_responses(*_FAULTS, NotFound, WrongChecksum, errors.ProfileNotRequested),
        },
    )
    @action(
        detail=False,
        url_path=f"universal-profile/(?P<address>{_ADDRESS})",
        throttle_classes=[user_rate("RELAY_READ_RATE")],
    )
    def requested_profile(self, request: Request, address: str) -> Response:
        """Return the newest request of the sponsor for this profile."""
        profile = AddressField().run_validation(address)
        rows = creations.requested(sponsor=_sponsor(request), profile=profile)
        return Response(_body(rows), headers=PRIVATE)


class CreationFiguresSerializer(serializers.Serializer[Any]):
    """The profiles that a sponsor requested."""

    created = serializers.IntegerField(help_text="New profiles that exist.")
    registered = serializers.IntegerField(help_text="Existing profiles with a new account.")
    inProgress = serializers.IntegerField(source="in_progress")
    failed = serializers.IntegerField()
    credits = serializers.IntegerField(help_text="What the deployments of new profiles have cost.")
    firstCredits = serializers.IntegerField(
        source="first_credits", help_text="What the sponsor has given to new profiles."
    )
    acted = serializers.IntegerField(help_text="How many have had a first successful relay call.")


class SponsorProfileViewSet(SponsorViewSet):
    @extend_schema(
        operation_id="sponsorProfiles",
        tags=["sponsors"],
        summary="Get the figures of the profiles that a sponsor requested",
        parameters=[DAYS],
        responses={200: CreationFiguresSerializer, **problem_responses(InvalidRequest, *FAULTS)},
    )
    @action(detail=False)
    def profiles(self, request: Request, name: str) -> Response:
        """Return how many there are, what they cost, and how many have acted."""
        figures = figures_of(self.access.sponsor, since=since_of(days_in(request), now=clock.now()))
        return Response(rendered(CreationFiguresSerializer, figures), headers=PRIVATE)


def _key(request: Request) -> ApiKey:
    key: Any = request.auth
    row: ApiKey = key.row
    return row


def _sponsor(request: Request) -> Sponsor:
    return _key(request).sponsor


def _body(
    rows: Sequence[ProfileCreation], refused: Mapping[int, DomainError] | None = None
) -> dict[str, Any]:
    """Return the profile of these rows, the home chain's first; `refused` has the other chains that get no copy."""
    row, chains = rows[0], [_on_chain(each) for each in rows]
    gift = creations.first_credits_of(row)
    for chain_id, refusal in (refused or {}).items():
        chains.append(
            {
                "chainId": chain_id,
                "status": RelayStatus.CANCELLED.value,
                "transactionHash": None,
                "failureCode": refusal.code,
                "credits": 0,
                "paidBy": None,
            }
        )
    return {
        "universalProfileAddress": row.profile_address,
        "keyManagerAddress": row.key_manager_address,
        "status": chains[0]["status"],
        "transactionHash": chains[0]["transactionHash"],
        "statusPath": f"/api/universal-profile/{row.profile_address}",
        "controllers": row.controllers,
        "chains": chains,
        "firstCredits": rendered(FirstCreditsSerializer, gift) if gift else None,
    }


def _on_chain(row: ProfileCreation) -> dict[str, Any]:
    relayed = getattr(row.hold, "relay_transaction", None)
    status = RelayStatus.EXECUTED_EXTERNALLY if row.hold is None else RelayStatus.PENDING
    return {
        "chainId": row.chain_id,
        "status": relayed.status if relayed else status.value,
        "transactionHash": relayed.transaction_hash if relayed else None,
        "failureCode": relayed.failure_code if relayed and not relayed.is_in_progress else "",
        "credits": creations.cost_of(row),
        "paidBy": creations.payer_of(row),
    }
