"""Sessions of hosted pages: the customer portal, and Checkout in setup mode."""

from typing import Any

from stripe_double.account import Account, find_param
from stripe_double.parameters import Array, Boolean, Enum, String, takes
from stripe_double.resources import setup_intents
from stripe_double.routing import Route, list_route, retrieve_route
from stripe_double.store import Resource, new_id

_DAY = 86_400
_NULL = (
    "adaptive_pricing", "after_expiration", "allow_promotion_codes", "amount_subtotal", "amount_total",
    "client_reference_id", "client_secret", "collected_information", "consent", "consent_collection", "currency",
    "currency_conversion", "customer_account", "customer_creation", "customer_details", "customer_email", "discounts",
    "integration_identifier", "invoice", "invoice_creation", "locale", "managed_payments", "origin_context",
    "payment_intent", "payment_link", "payment_method_collection", "payment_method_configuration_details",
    "permissions", "phone_number_collection", "recovered_from", "saved_payment_method_options",
    "shipping_address_collection", "shipping_cost", "submit_type", "subscription", "total_details", "wallet_options",
)  # fmt: skip
_CHECKOUT_PATH = "/v1/checkout/sessions"
_PORTAL_PATH = "/v1/billing_portal/sessions"
_CONFIGURATIONS_PATH = "/v1/billing_portal/configurations"


def create_checkout(account: Account, params: dict[str, Any]) -> Resource:
    """Create a Checkout session that captures a card for later payments."""
    customer = find_param(account, "customer", params["customer"], "customer")["id"]
    intent = setup_intents.create(account, {"customer": customer, "payment_method_types": ["card"]})
    identifier = new_id("cs_test", 40)
    return account.add(
        {
            "object": "checkout.session",
            "id": identifier,
            **dict.fromkeys(_NULL),
            "automatic_tax": dict.fromkeys(("liability", "provider", "status")) | {"enabled": False},
            "billing_address_collection": params.get("billing_address_collection"),
            "cancel_url": params.get("cancel_url"),
            "created": account.now,
            "custom_fields": [],
            "custom_text": dict.fromkeys(
                ("after_submit", "shipping_address", "submit", "terms_of_service_acceptance")
            ),
            "customer": customer,
            "expires_at": account.now + _DAY,
            "livemode": False,
            "metadata": {},
            "mode": "setup",
            "payment_method_options": {},
            "payment_method_types": ["card"],
            "payment_status": "no_payment_required",
            "setup_intent": intent["id"],
            "shipping_options": [],
            "status": "open",
            "success_url": params["success_url"],
            "ui_mode": "hosted_page",
            "url": f"{account.url}/_pages/checkout/{identifier}",
        }
    )


def create_portal(account: Account, params: dict[str, Any]) -> Resource:
    """Create a portal session of a customer."""
    customer = find_param(account, "customer", params["customer"], "customer")["id"]
    identifier = new_id("bps", 40)
    return account.add(
        {
            "object": "billing_portal.session",
            "id": identifier,
            "configuration": _configuration(account)["id"],
            "created": account.now,
            "customer": customer,
            "customer_account": None,
            "flow": None,
            "livemode": False,
            "locale": None,
            "on_behalf_of": None,
            "return_url": params.get("return_url"),
            "url": f"{account.url}/_pages/portal/{identifier}",
        }
    )


def list_configurations(account: Account, params: dict[str, Any]) -> Resource:
    """Return the portal's only configuration; create it on first use."""
    _configuration(account)
    return dict(_LIST_CONFIGURATIONS.handler(account, params))


def _configuration(account: Account) -> Resource:
    for configuration in account.store.all("billing_portal.configuration"):
        return configuration
    return account.add(
        {
            "object": "billing_portal.configuration",
            "id": new_id("bpc"),
            "active": True,
            "application": None,
            "business_profile": dict.fromkeys(("headline", "privacy_policy_url", "terms_of_service_url")),
            "created": account.now,
            "default_return_url": None,
            "features": {
                "customer_update": {"allowed_updates": ["email", "address"], "enabled": True},
                "invoice_history": {"enabled": True},
                "payment_method_update": {"enabled": True, "payment_method_configuration": None},
                "subscription_cancel": {
                    "cancellation_reason": {"enabled": False, "feedback_options": None, "options": []},
                    "enabled": True,
                    "mode": "at_period_end",
                    "proration_behavior": "none",
                },
                "subscription_update": {
                    "billing_cycle_anchor": None,
                    "default_allowed_updates": [],
                    "enabled": False,
                    "proration_behavior": "none",
                    "schedule_at_period_end": {"conditions": []},
                    "trial_update_behavior": "end_trial",
                },
            },
            "is_default": True,
            "livemode": False,
            "login_page": {"enabled": False, "url": None},
            "metadata": {},
            "name": None,
            "updated": account.now,
        }
    )


_LIST_CONFIGURATIONS = list_route(
    _CONFIGURATIONS_PATH, "billing_portal.configuration", active=Boolean(), is_default=Boolean()
)
_CHECKOUT = takes(
    "customer",
    "mode",
    "success_url",
    billing_address_collection=Enum(("auto", "required")),
    cancel_url=String(),
    customer=String(),
    mode=Enum(("setup",)),
    payment_method_types=Array(Enum(("card",))),
    success_url=String(),
)
ROUTES = (
    Route("POST", _CHECKOUT_PATH, create_checkout, _CHECKOUT),
    retrieve_route(_CHECKOUT_PATH, "checkout.session"),
    Route("POST", _PORTAL_PATH, create_portal, takes("customer", customer=String(), return_url=String())),
    Route("GET", _CONFIGURATIONS_PATH, list_configurations, _LIST_CONFIGURATIONS.parameters),
)
