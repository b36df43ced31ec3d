"""
What owners change alone while their sponsor has a budget.

PUT /api/sponsors/{name}/policies/{policy}: write a policy's terms.
PUT /api/sponsors/{name}/policies/{policy}/state: switch it on or off.
GET, POST and DELETE /api/sponsors/{name}/signers: the addresses that sign the sponsor's vouchers.
"""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.common.errors import NotFound, WrongChecksum
from gateway.common.fields import SAFE_INTEGER_MAX
from gateway.common.http import PRIVATE
from gateway.common.problems import BODY_ERRORS, problem_responses
from gateway.web.serializers import (
    AddressField,
    BodySerializer,
    StrictIntegerField,
    Uint256Field,
    rendered,
)
from gateway.web.throttling import user_rate
from sponsors.api.access import FAULTS, SponsorViewSet
from sponsors.api.figures import PoliciesSerializer, policies_body
from sponsors.api.simulator import ContractField
from sponsors.errors import StaffDecide, TermsRefused
from sponsors.models import MOST_FIRST_DAYS, Policy, ProfileRule, Purpose, Sponsor, VoucherSigner
from sponsors.rules.functions import MOST_FUNCTIONS, NotAFunction, selectors_of
from sponsors.rules.rights import Right
from sponsors.services import self_service

_MOST_TARGETS, _MOST_LISTED, _MOST_CHAINS = 20, 200, 20
# A sponsor's server takes the operator's approval, because it gets the payloads of strangers.
_RULES = [choice for choice in ProfileRule.choices if choice[0] != ProfileRule.VERIFIED]
_PURPOSES = [choice for choice in Purpose.choices if choice[0] != Purpose.WELCOME]
_EXAMPLE = {"profiles": "new", "newSince": "2026-11-28T00:00:00Z", "callCredits": 1000, "userCalls": 10}


def _credits(text: str) -> StrictIntegerField:
    return StrictIntegerField(
        min_value=1, max_value=SAFE_INTEGER_MAX, required=False, default=None, allow_null=True, help_text=text
    )


class TargetRequestSerializer(BodySerializer):
    """A contract, and its functions if not all."""

    contract = ContractField(help_text="An address; `profile` for what a profile does to itself.")
    functions = serializers.ListField(
        child=serializers.CharField(max_length=20_000, allow_blank=True),
        required=False,
        default=list,
        max_length=MOST_FUNCTIONS,
        help_text="Selectors, signatures, names of well-known functions, or entries of an ABI. Empty: all functions.",
    )

    def validate_functions(self, value: list[str]) -> list[str]:
        """Return the functions as selectors."""
        try:
            found = [selector for text in value for selector in selectors_of(text)]
        except NotAFunction as error:
            raise serializers.ValidationError(str(error)) from error
        if len(found) > MOST_FUNCTIONS:
            raise serializers.ValidationError(f"Name at most {MOST_FUNCTIONS} functions.")
        return ["0x" + selector.hex() for selector in dict.fromkeys(found)]


class TermsRequestSerializer(BodySerializer):
    """The terms of a policy. Limits are in credits of the sponsor's part; null: no limit but the sponsor's budget."""

    purpose = serializers.ChoiceField(
        choices=_PURPOSES,
        required=False,
        default=Purpose.CALLS,
        help_text="What the policy pays for. One for new profiles pays their whole cost and has no targets.",
    )
    chainId = StrictIntegerField(
        required=False,
        default=None,
        allow_null=True,
        help_text="The chain whose calls it pays for; null for the home chain. Contracts are those of this chain.",
    )
    targets = serializers.ListField(
        child=TargetRequestSerializer(),
        required=False,
        default=list,
        max_length=_MOST_TARGETS,
        help_text="Empty: every call.",
    )
    profiles = serializers.ChoiceField(
        choices=_RULES, required=False, default=ProfileRule.ALL, help_text="Whose calls the policy pays for."
    )
    listed = serializers.ListField(
        child=AddressField(), required=False, default=list, max_length=_MOST_LISTED, help_text="For `listed`."
    )
    newSince = serializers.DateTimeField(
        required=False, default=None, allow_null=True, help_text="For `new`."
    )
    counterpart = AddressField(
        required=False,
        default=None,
        allow_null=True,
        help_text="The token, or the other profile of a follow.",
    )
    leastBalance = Uint256Field(
        required=False,
        default=None,
        allow_null=True,
        help_text="For `holding`, in the token's smallest unit.",
    )
    startsAt = serializers.DateTimeField(
        required=False, default=None, allow_null=True, help_text="It pays from then on."
    )
    endsAt = serializers.DateTimeField(
        required=False, default=None, allow_null=True, help_text="It pays until then."
    )
    gasPriceCeilingWei = Uint256Field(
        required=False, default=None, allow_null=True, help_text="Maximum gas price of a call."
    )
    sharePercent = StrictIntegerField(
        min_value=1, max_value=100, required=False, default=100, help_text="The user pays the rest."
    )
    callCredits = StrictIntegerField(
        min_value=1, max_value=SAFE_INTEGER_MAX, help_text="Maximum credits for one call."
    )
    userDayCredits = _credits("Maximum credits for one user in a UTC day.")
    userCredits = _credits("Maximum credits for one user in total.")
    userCalls = _credits("Maximum calls of one user in total.")
    windowSeconds = StrictIntegerField(
        min_value=60,
        max_value=2**31 - 1,
        required=False,
        default=None,
        allow_null=True,
        help_text="Length of a window.",
    )
    windowCredits = _credits("Maximum credits in each window.")
    windowCalls = _credits("Maximum calls or new profiles in each window.")
    campaignCredits = _credits("Maximum credits in total.")
    campaignCalls = _credits("Maximum calls or new profiles in total.")
    originCalls = _credits("For new profiles: the maximum for one `origin` in a UTC day.")
    firstCredits = _credits("For new profiles: credits of the sponsor that each gets when it exists.")
    firstDays = StrictIntegerField(
        min_value=1,
        max_value=MOST_FIRST_DAYS,
        required=False,
        default=None,
        allow_null=True,
        help_text="After how many days first credits expire.",
    )
    firstChainIds = serializers.ListField(
        child=StrictIntegerField(min_value=1),
        required=False,
        default=list,
        max_length=_MOST_CHAINS,
        help_text="Chains besides home on which first credits may be spent.",
    )

    @classmethod
    def terms_in(cls, data: Any) -> dict[str, Any]:
        """Return the fields of a `PolicyVersion`."""
        body = cls.read(data)
        return {_FIELDS.get(name, name): value for name, value in body.items()}


_FIELDS = {
    "chainId": "chain_id",
    "newSince": "new_since",
    "leastBalance": "least_balance",
    "startsAt": "starts_at",
    "endsAt": "ends_at",
    "gasPriceCeilingWei": "gas_price_ceiling_wei",
    "sharePercent": "share_percent",
    "callCredits": "call_credits",
    "userDayCredits": "user_day_credits",
    "userCredits": "user_credits",
    "userCalls": "user_calls",
    "windowSeconds": "window_seconds",
    "windowCredits": "window_credits",
    "windowCalls": "window_calls",
    "campaignCredits": "campaign_credits",
    "campaignCalls": "campaign_calls",
    "originCalls": "origin_calls",
    "firstCredits": "first_credits",
    "firstDays": "first_days",
    "firstChainIds": "first_chain_ids",
}


class StateSerializer(BodySerializer):
    isEnabled = serializers.BooleanField(help_text="Whether the policy pays for new calls.")


class SignerSerializer(serializers.Serializer[Any]):
    address = AddressField()
    since = serializers.DateTimeField(source="created_at")


class SignersSerializer(serializers.Serializer[Any]):
    """The addresses whose vouchers are accepted."""

    signers = SignerSerializer(many=True)


class SignerRequestSerializer(BodySerializer):
    address = AddressField(help_text="The address of the key with which your server signs vouchers.")


POLICY_PATH = "policies/(?P<policy>[-a-zA-Z0-9_]{1,40})"


# What a change stores stays.
_ChangeRate = user_rate("SPONSOR_TERMS_RATE")


class TermsViewSet(SponsorViewSet):
    writes = Right.OWN
    throttle_classes = (_ChangeRate,)

    @extend_schema(
        operation_id="writeSponsorTerms",
        tags=["sponsors"],
        summary="Write the terms of a policy",
        description="For owners of a sponsor with a budget. The terms are a new version and apply to the next call. An "
        "unknown name makes a policy, which is tried after the others.",
        request=TermsRequestSerializer,
        responses={
            200: PoliciesSerializer,
            **problem_responses(*BODY_ERRORS, WrongChecksum, StaffDecide, TermsRefused, *FAULTS),
        },
        examples=[OpenApiExample("Ten calls of each new profile", value=_EXAMPLE, request_only=True)],
    )
    @action(detail=False, methods=["put"], url_path=POLICY_PATH)
    def write(self, request: Request, name: str, policy: str) -> Response:
        self_service.save_terms(
            sponsor=self.access.sponsor,
            name=policy,
            terms=TermsRequestSerializer.terms_in(request.data),
            actor=self.access.person(),
        )
        return Response(policies_body(self.access.sponsor), headers=PRIVATE)

    @extend_schema(
        operation_id="switchSponsorPolicy",
        tags=["sponsors"],
        summary="Switch a policy on or off",
        description="For owners of a sponsor with a budget. It takes effect with the next call.",
        request=StateSerializer,
        responses={200: PoliciesSerializer, **problem_responses(*BODY_ERRORS, StaffDecide, *FAULTS)},
    )
    @action(detail=False, methods=["put"], url_path=f"{POLICY_PATH}/state")
    def switch(self, request: Request, name: str, policy: str) -> Response:
        is_enabled = StateSerializer.read(request.data)["isEnabled"]
        row = (
            Policy.objects.select_related("sponsor").filter(sponsor=self.access.sponsor, name=policy).first()
        )
        if row is None:
            raise NotFound("The sponsor has no policy of this name.")
        self_service.switch(policy=row, is_enabled=is_enabled, actor=self.access.person())
        return Response(policies_body(self.access.sponsor), headers=PRIVATE)


class SignerViewSet(SponsorViewSet):
    writes = Right.OWN

    def get_throttles(self) -> list[Any]:
        """Return the rate of changes, or that of reads."""
        return super().get_throttles() if self.request.method in SAFE_METHODS else [_ChangeRate()]

    @extend_schema(
        operation_id="sponsorSigners",
        tags=["sponsors"],
        summary="List the addresses that sign a sponsor's vouchers",
        responses={200: SignersSerializer, **problem_responses(*FAULTS)},
    )
    @action(detail=False, url_path="signers")
    def signers(self, request: Request, name: str) -> Response:
        return Response(_signers(self.access.sponsor), headers=PRIVATE)

    @extend_schema(
        operation_id="addSponsorSigner",
        tags=["sponsors"],
        summary="Add an address that signs vouchers",
        description="For owners of a sponsor with a budget. Vouchers that it signs are accepted from now on.",
        request=SignerRequestSerializer,
        responses={
            200: SignersSerializer,
            **problem_responses(*BODY_ERRORS, WrongChecksum, StaffDecide, TermsRefused, *FAULTS),
        },
    )
    @signers.mapping.post
    def add_signer(self, request: Request, name: str) -> Response:
        address = SignerRequestSerializer.read(request.data)["address"]
        self_service.add_signer(sponsor=self.access.sponsor, address=address, actor=self.access.person())
        return Response(_signers(self.access.sponsor), headers=PRIVATE)

    @extend_schema(
        operation_id="removeSponsorSigner",
        tags=["sponsors"],
        summary="Remove an address that signs vouchers",
        description="For owners. Vouchers that it has signed are refused from now on.",
        request=None,
        responses={200: SignersSerializer, **problem_responses(WrongChecksum, *FAULTS)},
    )
    @action(detail=False, methods=["delete"], url_path="signers/(?P<address>0x[0-9a-fA-F]{40})")
    def remove_signer(self, request: Request, name: str, address: str) -> Response:
        active = VoucherSigner.objects.filter(sponsor=self.access.sponsor, removed_at=None)
        signer = active.filter(address=AddressField().run_validation(address)).first()
        if signer is None:
            raise NotFound("The sponsor has no such signer.")
        self_service.remove_signer(signer=signer, actor=self.access.person())
        return Response(_signers(self.access.sponsor), headers=PRIVATE)


def _signers(sponsor: Sponsor) -> dict[str, Any]:
    rows = VoucherSigner.objects.filter(sponsor=sponsor, removed_at=None).order_by("pk")
    return rendered(SignersSerializer, {"signers": rows})
