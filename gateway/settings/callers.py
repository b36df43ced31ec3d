"""Callers of the API: which origins, how their requests are read, how many there may be."""

from corsheaders.defaults import default_headers

from gateway.common import env
from gateway.settings.process import BASE_DIR

CORS_ALLOWED_ORIGINS = env.listing("CORS_ALLOWED_ORIGINS", default=())
# Browser wallets call from extension origins; the API knows no cookies, so any origin may be allowed.
CORS_ALLOW_ALL_ORIGINS = env.flag("CORS_ALLOW_ALL_ORIGINS", default=False)
CORS_URLS_REGEX = r"^/(api|\.well-known)/.*$"
CORS_ALLOW_CREDENTIALS = False
CORS_ALLOW_HEADERS = (*default_headers, "idempotency-key")
CORS_EXPOSE_HEADERS = ["Retry-After", "X-Request-ID"]
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["users.api.authentication.AccessTokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_PARSER_CLASSES": ["gateway.common.bodies.BoundedJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_METADATA_CLASS": "gateway.common.metadata.MethodsOnly",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "gateway.common.problems.exception_handler",
    "UNAUTHENTICATED_USER": None,
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "gateway.common.bodies.AlwaysJSON",
}
AUTH_NONCE_RATE = env.rate("AUTH_NONCE_RATE", "30/minute")
AUTH_VERIFY_RATE = env.rate("AUTH_VERIFY_RATE", "30/minute")
AUTH_REFRESH_RATE = env.rate("AUTH_REFRESH_RATE", "60/minute")
RELAY_EXECUTE_RATE = env.rate("RELAY_EXECUTE_RATE", "600/minute")
# Callers of the LSP-15 paths have no token: counted by network address, then by signer.
LSP15_RATE = env.rate("LSP15_RATE", "120/minute")
LSP15_SIGNER_RATE = env.rate("LSP15_SIGNER_RATE", "120/minute")
LSP15_NEW_SIGNER_RATE = env.rate("LSP15_NEW_SIGNER_RATE", "30/minute")
# The signature of a call that failed on chain is public: after so many failures, repeating it takes a token.
LSP15_FAILURES_PER_CALL = env.integer("LSP15_FAILURES_PER_CALL", default=2, minimum=1)
DASHBOARD_RATE = env.rate("DASHBOARD_RATE", "600/minute")
RELAY_READ_RATE = env.rate("RELAY_READ_RATE", "1200/minute")
SPECTACULAR_SETTINGS = {
    "TITLE": "Credit relay gateway",
    "DESCRIPTION": (BASE_DIR / "gateway/description.md").read_text(encoding="utf-8"),
    "VERSION": "1.0.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "SCHEMA_PATH_PREFIX": r"/api",
    "OAS_VERSION": "3.1.0",
    "PREPROCESSING_HOOKS": ["gateway.docs.paths_as_documented"],
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "gateway.docs.waits_as_documented",
    ],
}
