"""Products."""

from typing import Any

from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing, new_id
from devstack.stripe.wire.finding import find, merge_metadata
from devstack.stripe.wire.lists import page
from devstack.stripe.wire.parameters import METADATA, PAGE, takes
from devstack.stripe.wire.refusals import Invalid
from devstack.stripe.wire.routes import Route
from devstack.stripe.wire.shapes import Flag, Several, Shape, Text

_PATH = "/v1/products"
_FIELDS: dict[str, Shape] = {
    "active": Flag(),
    "description": Text(clearable=True),
    "metadata": METADATA,
    "name": Text(),
    "statement_descriptor": Text(22, clearable=True),
    "unit_label": Text(12, clearable=True),
    "url": Text(clearable=True),
}


def create(account: Account, params: dict[str, Any]) -> Thing:
    """Create a product, under an id of the caller's choice if one is given."""
    identifier = params.pop("id", None) or new_id("prod", 14)
    if account.store.get("product", identifier):
        raise Invalid(
            f"Product already exists with ID: {identifier}", code="resource_already_exists", param="id"
        )
    product = account.add(_blank(identifier, account.now))
    _apply(product, params)
    account.tell("product.created", product)
    return product


def retrieve(account: Account, _params: dict[str, Any], identifier: str) -> Thing:
    """Return a product."""
    return find(account, "product", identifier)


def update(account: Account, params: dict[str, Any], identifier: str) -> Thing:
    """Change a product."""
    product = find(account, "product", identifier)
    with account.telling("product.updated", product):
        _apply(product, params)
        product["updated"] = account.now
    return product


def list_all(account: Account, params: dict[str, Any]) -> Thing:
    """Return a page of products."""
    found = account.store.all("product")
    if "active" in params:
        found = [item for item in found if item["active"] == params["active"]]
    if "ids" in params:
        found = [item for item in found if item["id"] in params["ids"]]
    return page(found, params, _PATH)


def _blank(identifier: str, now: int) -> Thing:
    nothing = ("default_price", "description", "package_dimensions", "shippable", "statement_descriptor")
    return {
        "object": "product",
        "id": identifier,
        "active": True,
        "created": now,
        "livemode": False,
        **dict.fromkeys((*nothing, "tax_code", "unit_label", "url")),
        "images": [],
        "marketing_features": [],
        "metadata": {},
        "updated": now,
    }


def _apply(product: Thing, params: dict[str, Any]) -> None:
    for name in _FIELDS.keys() - {"metadata"}:
        if name in params:
            product[name] = params[name]
    if "metadata" in params:
        merge_metadata(product, params["metadata"])


ROUTES = (
    Route("POST", _PATH, create, takes("name", **_FIELDS, id=Text())),
    Route("GET", _PATH, list_all, takes(**PAGE, active=Flag(), ids=Several(Text()))),
    Route("GET", f"{_PATH}/{{id}}", retrieve, takes()),
    Route("POST", f"{_PATH}/{{id}}", update, takes(**_FIELDS)),
)
