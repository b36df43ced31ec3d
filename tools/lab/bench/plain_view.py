"""A minimal view for `lab.bench.parts`: it reads the body of a relay call and returns a hash."""

import json

from django.http import HttpRequest, JsonResponse
from django.urls import path


def execute(request: HttpRequest) -> JsonResponse:
    """Return the body's signature as if it were a hash."""
    return JsonResponse({"transactionHash": json.loads(request.body)["transaction"]["signature"][:66]})


urlpatterns = [path("api/relay/execute", execute)]
