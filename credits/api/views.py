"""Read the signed roots of the ledger, and one's own entries with their proofs."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from credits.api import schema
from credits.api.serializers import ProofSerializer, RootSerializer
from credits.keys import public_key_set
from credits.models import CreditEntry, LedgerRoot
from credits.services.ledger_export import published
from credits.services.proofs import prove
from gateway.common.pagination import NewestFirst
from gateway.common.routers import ApiRouter
from gateway.common.throttling import network_rate, user_rate
from users.api.authentication import ProfileRequest


class RootPages(NewestFirst):
    """Roots, with the keys that verify them."""

    ordering = "-number"

    def get_paginated_response(self, data: Any) -> Response:
        answer = super().get_paginated_response(data)
        answer.data["keys"] = public_key_set()
        return answer

    def get_paginated_response_schema(self, schema: Any) -> dict[str, Any]:
        page = super().get_paginated_response_schema(schema)
        page["required"].append("keys")
        page["properties"]["keys"] = {
            "type": "array",
            "items": {"type": "object", "additionalProperties": {"type": "string"}},
            "description": "JSON Web Keys (RFC 7517); a root names one by its `keyId`.",
        }
        return page


class ProofPages(NewestFirst):
    ordering = "-account_version"


@extend_schema_view(
    list=extend_schema(
        operation_id="ledgerRoots",
        tags=["ledger"],
        summary="Read the signed roots of the ledger",
        description=schema.ROOTS_DESCRIPTION,
        auth=[],
        responses={200: RootSerializer(many=True), **schema.ROOTS},
    )
)
class RootViewSet(GenericViewSet[LedgerRoot]):
    authentication_classes = ()
    permission_classes = (AllowAny,)
    throttle_classes = (network_rate("LEDGER_ROOTS_RATE"),)
    pagination_class = RootPages
    serializer_class = RootSerializer
    queryset = LedgerRoot.objects.all()

    def list(self, request: Request) -> Response:
        rows = [published(root) for root in self.paginate_queryset(self.get_queryset()) or ()]
        answer = self.get_paginated_response(RootSerializer(rows, many=True).data)
        answer["Cache-Control"] = "public, max-age=60"
        return answer


@extend_schema_view(
    list=extend_schema(
        operation_id="ledgerProofs",
        tags=["ledger"],
        summary="Read the own entries with their proofs, page by page",
        description=schema.PROOFS_DESCRIPTION,
        responses={200: ProofSerializer(many=True), **schema.PROOFS},
    )
)
class ProofViewSet(GenericViewSet[CreditEntry]):
    throttle_classes = (user_rate("DASHBOARD_RATE"),)
    pagination_class = ProofPages
    serializer_class = ProofSerializer
    request: ProfileRequest

    def get_queryset(self) -> QuerySet[CreditEntry]:
        return CreditEntry.objects.filter(account__user_id=self.request.user.pk)

    def list(self, request: ProfileRequest) -> Response:
        proofs = prove(self.paginate_queryset(self.get_queryset()) or ())
        answer = self.get_paginated_response(ProofSerializer(proofs, many=True).data)
        answer["Cache-Control"] = "no-store"
        return answer


router = ApiRouter()
router.register(r"\.well-known/ledger-roots", RootViewSet, basename="ledger-roots")
router.register("api/ledger/proofs", ProofViewSet, basename="ledger-proofs")
urlpatterns = router.urls
