"""The access token, as OpenAPI knows it."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension


class AccessTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Describes `AccessTokenAuthentication`."""

    target_class = "users.api.authentication.AccessTokenAuthentication"
    name = "accessToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "JWT",
            "description": (
                "The `access` token of `/api/auth/verify` or `/api/auth/refresh`, as `Authorization: Bearer <JWT>` "
                "or as the bare `<JWT>`."
            ),
        }
