"""
What a sponsor's members see of calls.

GET /api/sponsors/{name}/contracts: the spend by contract.
GET /api/sponsors/{name}/calls: the newest calls and refusals, for owners.
POST /api/sponsors/{name}/preview: how many of the newest calls a draft of terms would have paid.
"""

from typing import Any

from django.core.exceptions import ValidationError
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.common import clock
from gateway.common.db import reading_from_replica
from gateway.common.errors import InvalidRequest, WrongChecksum
from gateway.common.http import PRIVATE
from gateway.common.problems import BODY_ERRORS, problem_responses
from gateway.web.serializers import rendered
from portal.queries import MOST_CONTRACTS, MOST_REQUESTS, contracts_of, requests_of
from portal.queries.previews import MOST_CALLS, preview_of
from relay.models import RelayStatus
from sponsors.api.access import FAULTS, SponsorViewSet
from sponsors.api.figures import DAYS, days_in
from sponsors.api.terms import TermsRequestSerializer
from sponsors.errors import TermsRefused
from sponsors.models import PolicyVersion
from sponsors.queries.figures import since_of
from sponsors.rules.calls import Action
from sponsors.rules.preview import ASSUMED
from sponsors.rules.rights import Right
from sponsors.services.refusals import MOST_KEPT


class SpentOnContractSerializer(serializers.Serializer[Any]):
    contract = serializers.CharField(
        help_text="An address; `profile` for calls of the profile itself, `batch` for calls with several targets, "
        "`deployment` for new contracts, `new-profile` for profiles that the sponsor's server requested."
    )
    credits = serializers.IntegerField()
    calls = serializers.IntegerField()


class ContractsSerializer(serializers.Serializer[Any]):
    contracts = SpentOnContractSerializer(
        many=True, help_text=f"The {MOST_CONTRACTS} contracts with the highest spend, highest first."
    )


class SponsorContractViewSet(SponsorViewSet):
    @extend_schema(
        operation_id="sponsorContracts",
        tags=["sponsors"],
        summary="Get a sponsor's spend by contract",
        parameters=[DAYS],
        responses={
            200: ContractsSerializer,
            **problem_responses(InvalidRequest, *FAULTS),
        },
    )
    @action(detail=False)
    def contracts(self, request: Request, name: str) -> Response:
        since = since_of(days_in(request), now=clock.now())
        rows = contracts_of(self.access.sponsor, since=since)
        return Response(rendered(ContractsSerializer, {"contracts": rows}), headers=PRIVATE)


class CalledSerializer(serializers.Serializer[Any]):
    """A contract and function that a call calls."""

    contract = serializers.CharField(
        help_text="An address; `profile` for what the profile does to itself, `deployment` for a new contract, "
        "`delegatecall` for another contract's code, `new-profile` for a profile that the sponsor's server requested."
    )
    function = serializers.SerializerMethodField(help_text="A selector; `0x` for a transfer of LYX.")

    def get_function(self, action: Action) -> str:
        return "0x" + action.function.hex()


class SponsorCallSerializer(serializers.Serializer[Any]):
    """A call that the sponsor paid, or did not pay."""

    at = serializers.DateTimeField(
        help_text="When it was accepted; of a refusal, when it was last asked for."
    )
    chainId = serializers.IntegerField(source="chain_id", help_text="The chain of the call.")
    actions = CalledSerializer(many=True, help_text="Empty if the payload cannot be read.")
    policy = serializers.CharField(
        help_text="The policy that paid, or that was nearest to paying; empty if none was asked."
    )
    credits = serializers.IntegerField(
        help_text="What the sponsor paid or holds; of a refusal, the highest cost."
    )
    transactionHash = serializers.CharField(
        source="transaction_hash",
        allow_null=True,
        help_text="Null for a refusal, and once the account is deleted.",
    )
    status = serializers.ChoiceField(
        choices=RelayStatus.choices, allow_null=True, help_text="Null for a refusal."
    )
    rule = serializers.CharField(allow_null=True, help_text="The code of the problem; null for a paid call.")
    serverResponse = serializers.CharField(
        source="server_response",
        help_text="What your server gave instead of a valid response, such as `status 404`; otherwise empty.",
    )
    requests = serializers.IntegerField(help_text="How often the same call was refused; 1 for a paid call.")


class SponsorCallsSerializer(serializers.Serializer[Any]):
    calls = SponsorCallSerializer(many=True, help_text=f"The newest {MOST_REQUESTS}, newest first.")


_KINDS = ("paid", "refused")


class SponsorCallViewSet(SponsorViewSet):
    reads = Right.OWN

    @extend_schema(
        operation_id="sponsorCalls",
        tags=["sponsors"],
        summary="List a sponsor's newest calls and refusals",
        description="For owners, because on the chain a hash leads to the profile. Refusals are those of callers who "
        f"named the sponsor; the service keeps the newest {MOST_KEPT}, and none of their profiles is shown.",
        parameters=[OpenApiParameter("kind", str, enum=_KINDS, description="Only these; both without it.")],
        responses={200: SponsorCallsSerializer, **problem_responses(InvalidRequest, *FAULTS)},
    )
    @action(detail=False)
    def calls(self, request: Request, name: str) -> Response:
        kind = request.query_params.get("kind")
        if kind not in {None, *_KINDS}:
            raise serializers.ValidationError({"kind": ["Send paid or refused."]})
        rows = requests_of(self.access.sponsor, paid=kind != "refused", refused=kind != "paid")
        return Response(rendered(SponsorCallsSerializer, {"calls": rows}), headers=PRIVATE)


class PreviewRefusalSerializer(serializers.Serializer[Any]):
    rule = serializers.CharField(help_text="The code of the problem.")
    calls = serializers.IntegerField()


class PreviewSerializer(serializers.Serializer[Any]):
    """What the terms would have done with past calls, had they begun with the first of them."""

    of = serializers.ChoiceField(
        choices=["own", "public"],
        source="of_calls",
        help_text="`own`: the newest calls that the sponsor paid, or refused to callers who named it. Without any, "
        "`public`: the newest executed calls to the contracts of the terms.",
    )
    calls = serializers.IntegerField(help_text=f"How many there are, at most {MOST_CALLS}.")
    paid = serializers.IntegerField(help_text="How many of them the terms would have paid.")
    credits = serializers.IntegerField(
        help_text="The sponsor's part of what these calls cost. A call that was refused counts with its highest cost."
    )
    undecided = serializers.IntegerField(
        help_text="How many depend on when their profiles signed in here, which only their own sponsor may learn."
    )
    assumed = serializers.BooleanField(
        help_text="Whether the preview assumes that each call has a voucher, or each profile the token or the follow."
    )
    refusals = PreviewRefusalSerializer(many=True, help_text="The most frequent first.")


class PreviewViewSet(SponsorViewSet):
    writes = Right.SIMULATE

    @extend_schema(
        operation_id="previewSponsorTerms",
        tags=["sponsors"],
        summary="Preview terms over the newest calls",
        description="Applies a draft of terms to past calls, in order and as if it had begun with the first of them: "
        "limits begin unused, and new profiles are those since then. The sponsor's other policies, its budget and its "
        "balance do not count. Nothing is stored.",
        request=TermsRequestSerializer,
        responses={
            200: PreviewSerializer,
            **problem_responses(*BODY_ERRORS, WrongChecksum, TermsRefused, *FAULTS),
        },
    )
    @action(detail=False, methods=["post"], url_path="preview")
    def preview(self, request: Request, name: str) -> Response:
        draft = PolicyVersion(**TermsRequestSerializer.terms_in(request.data))
        try:
            draft.clean()
            with reading_from_replica():
                previewed = preview_of(self.access.sponsor, draft)
        except (ValidationError, ValueError) as error:
            text = " ".join(error.messages) if isinstance(error, ValidationError) else f"{error}."
            raise TermsRefused(text) from error
        outcome = previewed.outcome
        body = {
            "of_calls": previewed.calls,
            "calls": outcome.calls,
            "paid": outcome.paid,
            "credits": outcome.credits,
            "undecided": outcome.undecided,
            "assumed": draft.profiles in ASSUMED,
            "refusals": [{"rule": rule, "calls": calls} for rule, calls in outcome.refusals.most_common()],
        }
        return Response(rendered(PreviewSerializer, body), headers=PRIVATE)
