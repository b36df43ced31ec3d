"""
Roots and proofs over HTTP.

GET /.well-known/ledger-roots: the signed roots; public.
GET /api/ledger/proofs: the entries of the signed-in profile with their proofs.
"""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import serializers
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from credits.models import CreditEntry
from gateway.common.errors import InvalidRequest, NotAuthenticated, TooManyRequests
from gateway.common.http import PRIVATE
from gateway.common.problems import problem_responses
from gateway.web.pagination import NewestFirst
from gateway.web.routers import ApiRouter
from gateway.web.throttling import network_rate, user_rate
from proofs.keys import public_key_set
from proofs.models import LedgerRoot
from proofs.services.proving import prove
from proofs.services.roots import published
from users.api.authentication import ProfileRequest

_ROOTS = problem_responses(InvalidRequest, TooManyRequests)
_PROOFS = problem_responses(InvalidRequest, NotAuthenticated)
_ROOTS_DESCRIPTION = """
The signed roots of the ledger, newest first: at least one an hour, each over all entries since the previous root. If
you keep copies of the roots and `keys` elsewhere, you can detect every later change of an entry under them. Follow
`next` until it is null.
""".strip()
_PROOFS_DESCRIPTION = """
The entries of the signed-in profile, newest first, each with a proof that it is under a signed root. Hash `leaf`, then
go up along `path`, and you have `tree` of the root (RFC 6962). `docs/examples/javascript/verify_entry.mjs` in
the repository does it.
""".strip()
_PATH = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"left": {"type": "string"}, "right": {"type": "string"}},
        "minProperties": 1,
        "maxProperties": 1,
    },
}
_SALTED = {
    "type": "object",
    "required": ["salt", "text"],
    "properties": {"salt": {"type": "string"}, "text": {"type": "string"}},
}
_DISCLOSED = {
    "type": ["object", "null"],
    "properties": {"profile": _SALTED, "reason": _SALTED},
}


class RootSerializer(serializers.Serializer[Any]):
    """A root; each one names the hash of the one before it."""

    text = serializers.CharField(
        help_text="The signed text: JSON with `closedAt`, `entries`, `lastEntry`, `previous`, `root` and `tree`."
    )
    signature = serializers.CharField(help_text="ES256 over the UTF-8 bytes of `text`: r and s in hex.")
    keyId = serializers.CharField(help_text="The `kid` of the key.")


@extend_schema_field(_PATH)
class PathField(serializers.ReadOnlyField):
    """Hashes of siblings, from the leaf up."""


@extend_schema_field(_DISCLOSED)
class DisclosedField(serializers.ReadOnlyField):
    """The texts behind the salted hashes, with their salts."""


class ProofSerializer(serializers.Serializer[Any]):
    entry = serializers.IntegerField()
    leaf = serializers.CharField(
        allow_null=True, help_text="The entry as it was hashed, JSON; null until a root is closed over it."
    )
    path = PathField(help_text="Hashes of the siblings from the leaf to the root, each keyed by its side.")
    root = RootSerializer(allow_null=True)
    disclosed = DisclosedField(
        help_text="`profile` and `reason` with their salts. The leaf contains the SHA-256 of salt and text."
    )


class RootPages(NewestFirst):
    """Roots, with the keys that verify them."""

    ordering = "-number"

    def get_paginated_response(self, data: Any) -> Response:
        response = super().get_paginated_response(data)
        response.data["keys"] = public_key_set()
        return response

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
        description=_ROOTS_DESCRIPTION,
        auth=[],
        responses={200: RootSerializer(many=True), **_ROOTS},
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
        body = self.get_paginated_response(RootSerializer(rows, many=True).data)
        body["Cache-Control"] = "public, max-age=60"
        return body


@extend_schema_view(
    list=extend_schema(
        operation_id="ledgerProofs",
        tags=["ledger"],
        summary="Read the own entries with their proofs, page by page",
        description=_PROOFS_DESCRIPTION,
        responses={200: ProofSerializer(many=True), **_PROOFS},
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
        response = self.get_paginated_response(ProofSerializer(proofs, many=True).data)
        return Response(response.data, headers=PRIVATE)


router = ApiRouter()
router.register(r"\.well-known/ledger-roots", RootViewSet, basename="ledger-roots")
router.register("api/ledger/proofs", ProofViewSet, basename="ledger-proofs")
urlpatterns = router.urls
