"""POST /api/sponsors/{name}/simulate: whether a sponsor would pay for a call, which policy, and why others refuse."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.common import clock
from gateway.common.errors import DomainError, WrongChecksum
from gateway.common.fields import SAFE_INTEGER_MAX
from gateway.common.http import PRIVATE
from gateway.common.problems import BODY_ERRORS, problem_responses
from gateway.web.serializers import (
    AddressField,
    BodySerializer,
    HashField,
    StrictIntegerField,
    Uint256Field,
    rendered,
)
from sponsors.api.access import FAULTS, SponsorViewSet
from sponsors.rules.calls import PROFILE, Action
from sponsors.rules.choosing import Decision
from sponsors.rules.functions import NotAFunction, selectors_of
from sponsors.rules.rights import Right
from sponsors.services.simulation import ImaginedCall, executed, simulate

_MOST_ACTIONS = 50
_GWEI = 10**9
_DESCRIBED = ("profile", "actions", "credits")
_CONTRACT = "0x0000000000000000000000000000000000000001"


@extend_schema_field({"type": "string", "pattern": "^(profile|0x[0-9a-fA-F]{40})$"})
class ContractField(AddressField):
    """An address, or `profile`."""

    def to_internal_value(self, data: Any) -> str:
        return PROFILE if data == PROFILE else super().to_internal_value(data)


class ActionSerializer(BodySerializer):
    """A contract and function that the call calls."""

    contract = ContractField(help_text="An address; `profile` for what the profile does to itself.")
    function = serializers.CharField(
        max_length=20_000,
        required=False,
        default="",
        allow_blank=True,
        help_text="A selector, a signature, the name of a well-known function with one form, or an entry of an ABI; "
        "`0x` for a transfer of LYX.",
    )

    def validate_function(self, value: str) -> bytes:
        """Return the selector."""
        try:
            found = selectors_of(value)
        except NotAFunction as error:
            raise serializers.ValidationError(str(error)) from error
        if len(found) > 1:
            raise serializers.ValidationError("Several functions have this name. Write the types too.")
        return found[0]


class SimulationSerializer(BodySerializer):
    """A call, described by its profile, actions and cost, or by the hash of a transaction."""

    transactionHash = HashField(
        required=False,
        help_text="Of a call that the service has executed; without `profile`, `actions` and "
        "`credits`. Its gas price counts.",
    )
    profile = AddressField(required=False, help_text="A profile that has never signed in counts as new.")
    actions = serializers.ListField(
        child=ActionSerializer(), required=False, min_length=1, max_length=_MOST_ACTIONS
    )
    credits = StrictIntegerField(
        required=False, min_value=1, max_value=SAFE_INTEGER_MAX, help_text="The call's highest cost."
    )
    gasPriceWei = Uint256Field(required=False, default=_GWEI, help_text="By default 1 gwei.")
    chainId = StrictIntegerField(
        required=False,
        allow_null=True,
        default=None,
        help_text="The chain of the call; by default the home chain.",
    )
    voucherFor = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=40,
        help_text="The name of a policy: simulate a call with a valid voucher for it.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require a hash, or all of profile, actions and credits."""
        described = [name for name in _DESCRIBED if name in attrs]
        if "transactionHash" in attrs and described:
            raise serializers.ValidationError(dict.fromkeys(described, "Not with `transactionHash`."))
        missing = [name for name in _DESCRIBED if name not in attrs]
        if "transactionHash" not in attrs and missing:
            raise serializers.ValidationError(
                dict.fromkeys(missing, "Send this, or `transactionHash`."), code="required"
            )
        return attrs


class PolicyRefusalSerializer(serializers.Serializer[Any]):
    """The rule of a policy that refuses the call."""

    policy = serializers.CharField(source="version.policy")
    code = serializers.CharField(source="refusal.code", help_text="The problem's code for a real call.")
    detail = serializers.CharField(source="refusal.detail")


class SimulatedSerializer(serializers.Serializer[Any]):
    """The policy that would pay, and the most that each side would pay."""

    policy = serializers.CharField(allow_null=True, help_text="The policy that pays; null if none does.")
    sponsorCredits = serializers.IntegerField()
    userCredits = serializers.IntegerField(help_text="The whole cost if no policy pays.")
    refusals = PolicyRefusalSerializer(many=True, help_text="The refusals of the policies checked before.")
    code = serializers.CharField(
        allow_null=True, help_text="Why the sponsor pays nothing: the problem's code for a real call."
    )
    detail = serializers.CharField(allow_null=True)


class SimulatorViewSet(SponsorViewSet):
    writes = Right.SIMULATE

    @extend_schema(
        operation_id="simulateSponsorship",
        tags=["sponsors"],
        summary="Simulate whether a sponsor would pay for a call",
        description="The service decides as for a real call at this moment, but stores and counts nothing.",
        request=SimulationSerializer,
        responses={
            200: SimulatedSerializer,
            **problem_responses(*BODY_ERRORS, WrongChecksum, *FAULTS),
        },
        examples=[
            OpenApiExample(
                "A call of one contract",
                value={
                    "profile": "0x12860139DBD9E9678A08B4c8aAE062302298b05c",
                    "actions": [{"contract": _CONTRACT, "function": "0x760d9bba"}],
                    "credits": 250,
                },
                request_only=True,
            ),
            OpenApiExample(
                "An executed call", value={"transactionHash": "0x" + "5c" * 32}, request_only=True
            ),
        ],
    )
    @action(detail=False, methods=["post"], url_path="simulate")
    def simulate(self, request: Request, name: str) -> Response:
        imagined = _imagined(SimulationSerializer.read(request.data))
        result = rendered(SimulatedSerializer, self._outcome(imagined))
        return Response(result, headers=PRIVATE)

    def _outcome(self, imagined: ImaginedCall) -> dict[str, Any]:
        refusal: DomainError | None = None
        decision = Decision(paid_by=None, sponsor_credits=0, user_credits=imagined.credits, refusals=())
        try:
            decision = simulate(sponsor=self.access.sponsor, call=imagined, now=clock.now())
            refusal = None if decision.paid_by else decision.error()
        except DomainError as error:
            refusal = error
        return {
            "policy": decision.paid_by and decision.paid_by.policy,
            "sponsorCredits": decision.sponsor_credits,
            "userCredits": decision.user_credits,
            "refusals": decision.refusals,
            "code": refusal and refusal.code,
            "detail": refusal and refusal.detail,
        }


def _imagined(body: dict[str, Any]) -> ImaginedCall:
    if "transactionHash" in body:
        return executed(body["transactionHash"], voucher_for=body["voucherFor"])
    return ImaginedCall(
        profile=body["profile"],
        actions=[Action(each["contract"], each["function"]) for each in body["actions"]],
        credits=body["credits"],
        gas_price_wei=body["gasPriceWei"],
        voucher_for=body["voucherFor"],
        chain_id=body["chainId"],
    )
