"""GET /metrics: for a Prometheus server that knows the token."""

import hmac
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.views import APIView

from gateway.common.errors import NotAuthenticated, NotFound
from gateway.metrics.collecting import exposition


class MetricsView(APIView):
    """
    The service's figures. They are nobody's but the operator's: without METRICS_TOKEN there is no such page.

    The view is no part of the API that the OpenAPI document describes.
    """

    schema = None
    authentication_classes = ()
    permission_classes = (AllowAny,)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Look at the token before anything else, the method included."""
        if not settings.METRICS_TOKENS:
            raise NotFound("There is nothing at this address.")
        if not _is_known(request.headers.get("Authorization", "")):
            raise NotAuthenticated("This address needs the header Authorization: Bearer <METRICS_TOKEN>.")
        super().initial(request, *args, **kwargs)

    def get(self, request: Request) -> HttpResponse:
        """Answer in Prometheus' text format."""
        return HttpResponse(
            exposition(), content_type=CONTENT_TYPE_PLAIN_0_0_4, headers={"Cache-Control": "no-store"}
        )


def _is_known(header: str) -> bool:
    """Compare with every token, in a time that tells nothing of them."""
    scheme, _, token = header.partition(" ")
    given = token.strip().encode()
    found = [hmac.compare_digest(given, known.encode()) for known in settings.METRICS_TOKENS]
    return scheme.lower() == "bearer" and any(found)
