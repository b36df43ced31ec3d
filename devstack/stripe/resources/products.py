"""Products."""

from typing import Any

from devstack.stripe.account import Account
from devstack.stripe.errors import InvalidRequest
from devstack.stripe.events import emit
from devstack.stripe.parameters import Boolean, Metadata, Parameter, String, takes
from devstack.stripe.routing import Route
from devstack.stripe.store import Resource, apply_fields, new_id

_PATH = "/v1/products"
_FIELDS: dict[str, Parameter] = {
    "active": Boolean(),
    "description": String(can_unset=True),
    "metadata": Metadata(),
    "name": String(),
    "statement_descriptor": String(22, can_unset=True),
    "unit_label": String(12, can_unset=True),
    "url": String(can_unset=True),
}
_NULL = (
    "default_price", "description", "package_dimensions", "shippable", "statement_descriptor", "tax_code",
    "unit_label", "url",
)  # fmt: skip


def create(account: Account, params: dict[str, Any]) -> Resource:
    """Create a product, under an id of the caller's choice if one is given."""
    identifier = params.get("id") or new_id("prod", 14)
    if account.store.get("product", identifier):
        message = f"Product already exists with ID: {identifier}"
        raise InvalidRequest(message, code="resource_already_exists", param="id")
    product = account.add(
        {
            "object": "product",
            "id": identifier,
            **dict.fromkeys(_NULL),
            "active": True,
            "created": account.now,
            "images": [],
            "livemode": False,
            "marketing_features": [],
            "metadata": {},
            "updated": account.now,
        }
    )
    apply_fields(product, params, _FIELDS)
    emit(account, "product.created", product)
    return product


ROUTES = (Route("POST", _PATH, create, takes("name", **_FIELDS, id=String())),)
