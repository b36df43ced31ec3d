"""The settings of the OpenAPI document; `gateway.docs` shows it to integrators."""

from pathlib import Path

OPENAPI = {
    "TITLE": "Credit relay gateway",
    "DESCRIPTION": Path(__file__).with_name("description.md").read_text(encoding="utf-8"),
    "VERSION": "1.0.0",
    "SERVERS": [{"url": "/", "description": "This service."}],
    "TAGS": [
        {"name": "sign-in", "description": "Sessions and tokens of a profile."},
        {"name": "relay", "description": "Relay calls, their status, and the quota."},
        {"name": "user", "description": "Dashboard, histories, check-ins and ad networks."},
        {"name": "payments", "description": "The monthly subscription by card."},
        {"name": "ledger", "description": "Signed roots of the ledger, and proofs for the user's entries."},
        {
            "name": "sponsors",
            "description": "For the members of sponsors, which pay for others' relay calls.",
        },
        {"name": "LSP-15 wallets", "description": "Paths for wallets that speak LSP-15 and send no token."},
        {"name": "ad networks", "description": "The URLs at which ad networks report earnings."},
    ],
    "SERVE_INCLUDE_SCHEMA": False,
    # Collapsed: the page of all operations takes seconds to draw.
    "SWAGGER_UI_SETTINGS": {"docExpansion": "none", "defaultModelsExpandDepth": -1, "deepLinking": True},
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "SCHEMA_PATH_PREFIX": r"/api",
    "OAS_VERSION": "3.1.0",
    # No list of choices with labels: labels repeat the values, and members' descriptions explain values that need it.
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_NAME_OVERRIDES": {
        "StatusEnum": "relay.models.RelayStatus",
        "SubscriptionStatusEnum": "payments.models.Subscription.Status",
    },
    "PREPROCESSING_HOOKS": ["gateway.docs.paths_as_documented"],
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "gateway.docs.ready_for_generators",
        "gateway.docs.share_examples",
        "gateway.docs.share_error_responses",
    ],
}
