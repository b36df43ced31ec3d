"""GET /api/sponsors/{name}/contracts: a sponsor's spend by contract."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.common import clock
from gateway.common.errors import InvalidRequest
from gateway.common.http import PRIVATE
from gateway.common.problems import problem_responses
from gateway.web.serializers import rendered
from portal.queries import MOST_CONTRACTS, contracts_of
from sponsors.api.access import FAULTS, SponsorViewSet
from sponsors.api.figures import DAYS, days_in
from sponsors.queries.figures import since_of


class SpentOnContractSerializer(serializers.Serializer[Any]):
    contract = serializers.CharField(
        help_text="An address; `profile` for calls of the profile itself, `batch` for calls with several targets, "
        "`deployment` for new contracts."
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
