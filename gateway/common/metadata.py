"""What OPTIONS answers beside the header Allow."""

from typing import TYPE_CHECKING, Any

from rest_framework.metadata import BaseMetadata
from rest_framework.request import Request

if TYPE_CHECKING:
    # REST framework imports this module while it builds APIView, whose defaults name classes of ours.
    from rest_framework.views import APIView


class MethodsOnly(BaseMetadata):
    """Names the methods of a path, and nothing from inside: the API is described at `/api/openapi.json`."""

    def determine_metadata(self, request: Request, view: "APIView") -> dict[str, Any]:
        return {"methods": view.allowed_methods}
