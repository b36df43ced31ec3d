"""
GET and POST /api/sponsors/{name}/transfers, DELETE /api/sponsors/{name}/transfers/{id}.

Credits that owners have transferred to the sponsor from their own account.
"""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from gateway.common import clock
from gateway.common.errors import InvalidRequest
from gateway.common.fields import SAFE_INTEGER_MAX
from gateway.common.http import PRIVATE
from gateway.common.problems import BODY_ERRORS, problem_responses
from gateway.web.idempotency import key_header, key_of
from gateway.web.pagination import NewestFirst
from gateway.web.serializers import AddressField, BodySerializer, StrictIntegerField
from gateway.web.throttling import user_rate
from sponsors.api.access import FAULTS, SponsorViewSet
from sponsors.errors import PaymentWarned, TransferDiffers, TransferEnded, TransferRefused, TransferWaits
from sponsors.models import Transfer
from sponsors.queries import transfers_to
from sponsors.rules.rights import Right
from sponsors.services import transfers

_DESCRIPTION = """
Transfers credits from an owner's account to the sponsor. Only credits of collected subscriptions and packs can be
transferred, the oldest payment first. Given credits, credits that a call holds, and credits of a payment that was
refunded or disputed, even in part, stay on the account.

* Send a new `Idempotency-Key` for each transfer, and the same key with every retry: the credits move once.
* A transfer above the daily limit (UTC) of the person or of the sponsor moves nothing yet. Its status is `waiting`
  until the operator's staff decide. Meanwhile the owner can still use the credits, or withdraw the transfer.
* Credits of a payment in which a card network has warned of fraud stay on the account.
* When a payment is refunded or disputed, its transferred credits are taken back from the sponsor first. This can bring
  the sponsor's balance below zero.
""".strip()
_KEY = key_header(
    "new for every transfer; a repeat with the same key returns the same transfer.", required=True
)


class TransferSerializer(serializers.Serializer[Any]):
    """A transfer of paid credits to the sponsor."""

    id = serializers.IntegerField()
    profile = AddressField(
        source="user.profile_address", allow_null=True, help_text="Null once the account is deleted."
    )
    credits = serializers.IntegerField()
    clawedBack = serializers.IntegerField(
        source="clawed_back", help_text="Credits taken back since, by refunds and disputes of the payments."
    )
    status = serializers.ChoiceField(
        choices=Transfer.Status.choices,
        help_text="`waiting` for staff, `moved`, `refused` by staff, or `withdrawn` by the owner.",
    )
    createdAt = serializers.DateTimeField(source="created_at")
    endedAt = serializers.DateTimeField(
        source="ended_at",
        allow_null=True,
        help_text="When the credits moved, or the transfer ended otherwise.",
    )


class NewTransferSerializer(BodySerializer):
    """The credits to transfer."""

    credits = StrictIntegerField(min_value=1, max_value=SAFE_INTEGER_MAX)


class TransferPages(NewestFirst):
    ordering = "-pk"


_EXAMPLE = OpenApiExample(
    "Moved",
    response_only=True,
    status_codes=["200"],
    value={
        "id": 7,
        "profile": "0xBB645D97B0c7D101ca0d73131e521fe89B463BFD",
        "credits": 5000,
        "clawedBack": 0,
        "status": "moved",
        "createdAt": "2026-11-21T10:08:57.759Z",
        "endedAt": "2026-11-21T10:08:57.759Z",
    },
)


class TransferViewSet(SponsorViewSet, GenericViewSet[Transfer]):
    throttle_classes = (user_rate("BILLING_RATE"),)
    pagination_class = TransferPages
    serializer_class = TransferSerializer
    writes = Right.OWN

    @extend_schema(
        operation_id="sponsorTransfers",
        tags=["sponsors"],
        summary="List the transfers of owners to a sponsor, page by page",
        responses={200: TransferSerializer(many=True), **problem_responses(InvalidRequest, *FAULTS)},
    )
    @action(detail=False, url_path="transfers")
    def transfers(self, request: Request, name: str) -> Response:
        page = self.paginate_queryset(transfers_to(self.access.sponsor)) or ()
        answer = self.get_paginated_response(TransferSerializer(page, many=True).data)
        return Response(answer.data, headers=PRIVATE)

    @extend_schema(
        operation_id="transferToSponsor",
        tags=["sponsors"],
        summary="Transfer own credits to a sponsor",
        description=_DESCRIPTION,
        parameters=[_KEY],
        request=NewTransferSerializer,
        responses={
            200: TransferSerializer,
            **problem_responses(
                *BODY_ERRORS, TransferRefused, PaymentWarned, TransferDiffers, TransferWaits, *FAULTS
            ),
        },
        examples=[_EXAMPLE, OpenApiExample("5,000 credits", value={"credits": 5000}, request_only=True)],
    )
    @transfers.mapping.post
    def transfer(self, request: Request, name: str) -> Response:
        payer, key = self.access.payer(), key_of(request, required=True)
        row = transfers.start(
            sponsor=self.access.sponsor,
            user=payer,
            credits=NewTransferSerializer.read(request.data)["credits"],
            key=key,
            now=clock.now(),
        )
        return self._shown(row.pk)

    @extend_schema(
        operation_id="withdrawTransferToSponsor",
        tags=["sponsors"],
        summary="Withdraw a waiting transfer of one's own",
        description="Nothing moves. A repeat changes nothing.",
        request=None,
        responses={200: TransferSerializer, **problem_responses(TransferEnded, *FAULTS)},
    )
    @action(detail=False, methods=["delete"], url_path=r"transfers/(?P<transfer_id>[0-9]{1,18})")
    def withdraw(self, request: Request, name: str, transfer_id: str) -> Response:
        pk, user = int(transfer_id), self.access.payer()
        transfers.withdraw(transfer_id=pk, sponsor=self.access.sponsor, user=user, now=clock.now())
        return self._shown(pk)

    def _shown(self, transfer_id: int) -> Response:
        row = transfers_to(self.access.sponsor).get(pk=transfer_id)
        return Response(TransferSerializer(row).data, headers=PRIVATE)
