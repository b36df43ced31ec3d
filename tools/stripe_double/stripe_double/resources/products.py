"""Products."""

from typing import Any

from stripe_double.account import Account, find
from stripe_double.errors import InvalidRequest
from stripe_double.events import emit, emit_changes
from stripe_double.parameters import Boolean, Metadata, Parameter, String, takes
from stripe_double.routing import Route, list_route, retrieve_route
from stripe_double.store import Resource, apply_fields, new_id

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
    """Create a product, optionally with a given id."""
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


def update(account: Account, params: dict[str, Any], identifier: str) -> Resource:
    """Change a product; `active` false archives it for new subscriptions."""
    product = find(account, "product", identifier)
    with emit_changes(account, "product.updated", product):
        apply_fields(product, params, _FIELDS)
        product["updated"] = account.now
    return product


def delete(account: Account, _params: dict[str, Any], identifier: str) -> Resource:
    """Delete a product that has no price."""
    product = find(account, "product", identifier)
    if any(price["product"] == identifier for price in account.store.all("price")):
        raise InvalidRequest("This product cannot be deleted because it has one or more user-created prices.")
    emit(account, "product.deleted", product)
    account.store.remove("product", identifier)
    return {"object": "product", "id": identifier, "deleted": True}


ROUTES = (
    Route("POST", _PATH, create, takes("name", **_FIELDS, id=String())),
    list_route(_PATH, "product", active=Boolean()),
    retrieve_route(_PATH, "product"),
    Route("POST", f"{_PATH}/{{id}}", update, takes(**_FIELDS)),
    Route("DELETE", f"{_PATH}/{{id}}", delete, takes()),
)
