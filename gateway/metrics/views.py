"""GET /metrics, for a Prometheus server that has the token."""

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
    The service's figures, for the operator only; without METRICS_TOKEN the page answers 404.

    The OpenAPI document does not describe this view.
    """

    schema = None
    authentication_classes = ()
    permission_classes = (AllowAny,)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the token before anything else, even the method."""
        if not settings.METRICS_TOKENS:
            raise NotFound("There is nothing at this address.")
        if not _is_known(request.headers.get("Authorization", "")):
            raise NotAuthenticated("This address needs the header Authorization: Bearer <METRICS_TOKEN>.")
        super().initial(request, *args, **kwargs)

    def get(self, request: Request) -> HttpResponse:
        """Answer in the text format of Prometheus."""
        return HttpResponse(
            exposition(), content_type=CONTENT_TYPE_PLAIN_0_0_4, headers={"Cache-Control": "no-store"}
        )


def _is_known(header: str) -> bool:
    """Compare with every token, in constant time."""
    scheme, _, token = header.partition(" ")
    given = token.strip().encode()
    found = [hmac.compare_digest(given, known.encode()) for known in settings.METRICS_TOKENS]
    return scheme.lower() == "bearer" and any(found)
