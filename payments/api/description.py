"""What the API's generated description cannot find out by itself."""

from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter


class DeleteWithBody(AutoSchema):
    """Describes the body of a DELETE, which generators leave out; it is optional, since a query will do."""

    def _get_request_body(self, direction: str = "request") -> Any:
        method, self.method = self.method, "POST"
        try:
            body = super()._get_request_body(direction)  # type: ignore[no-untyped-call]
        finally:
            self.method = method
        return {**body, "required": False}


IMMEDIATELY = OpenApiParameter(
    "cancelImmediately", bool, description="Instead of the body, where a proxy drops it; both must agree."
)
