"""Webhook endpoints."""

from typing import Any

from devstack.stripe.events.endpoints import make_endpoint
from devstack.stripe.state.account import API_VERSION, Account
from devstack.stripe.state.things import Thing
from devstack.stripe.wire.finding import find, merge_metadata
from devstack.stripe.wire.lists import page
from devstack.stripe.wire.parameters import CURSORS, METADATA, takes
from devstack.stripe.wire.refusals import Invalid
from devstack.stripe.wire.routes import Route
from devstack.stripe.wire.shapes import Choice, Flag, Several, Shape, Text

_PATH = "/v1/webhook_endpoints"
_FIELDS: dict[str, Shape] = {
    "description": Text(clearable=True),
    "enabled_events": Several(Text()),
    "metadata": METADATA,
    "url": Text(),
}


def create(account: Account, params: dict[str, Any]) -> Thing:
    """Send events to a URL; this answer alone shows the secret that signs them."""
    _check_url(params["url"])
    endpoint = make_endpoint(account, params["url"], params["enabled_events"])
    _apply(endpoint, params)
    return {**endpoint, "secret": endpoint["_secret"]}


def retrieve(account: Account, _params: dict[str, Any], identifier: str) -> Thing:
    """Return an endpoint."""
    return find(account, "webhook_endpoint", identifier, noun="webhook endpoint")


def update(account: Account, params: dict[str, Any], identifier: str) -> Thing:
    """Change an endpoint; a disabled one is told nothing."""
    endpoint = find(account, "webhook_endpoint", identifier, noun="webhook endpoint")
    if "url" in params:
        _check_url(params["url"])
    for name in ("url", "enabled_events"):
        if name in params:
            endpoint[name] = params[name]
    if "disabled" in params:
        endpoint["status"] = "disabled" if params["disabled"] else "enabled"
    _apply(endpoint, params)
    return endpoint


def list_all(account: Account, params: dict[str, Any]) -> Thing:
    """Return a page of endpoints."""
    return page(account.store.all("webhook_endpoint"), params, _PATH)


def delete(account: Account, _params: dict[str, Any], identifier: str) -> Thing:
    """Forget an endpoint; what was still to be sent there is not sent."""
    find(account, "webhook_endpoint", identifier, noun="webhook endpoint")
    account.store.remove("webhook_endpoint", identifier)
    return {"object": "webhook_endpoint", "id": identifier, "deleted": True}


def _check_url(url: str) -> None:
    if not url.startswith(("http://", "https://")):
        raise Invalid(
            f"Invalid URL: {url}. URLs must begin with https:// or http://.", code="url_invalid", param="url"
        )


def _apply(endpoint: Thing, params: dict[str, Any]) -> None:
    if "description" in params:
        endpoint["description"] = params["description"]
    if "metadata" in params:
        merge_metadata(endpoint, params["metadata"])


_CREATE = takes("enabled_events", "url", **_FIELDS, api_version=Choice((API_VERSION,)))
ROUTES = (
    Route("POST", _PATH, create, _CREATE),
    Route("GET", _PATH, list_all, takes(**CURSORS)),
    Route("GET", f"{_PATH}/{{id}}", retrieve, takes()),
    Route("POST", f"{_PATH}/{{id}}", update, takes(**_FIELDS, disabled=Flag())),
    Route("DELETE", f"{_PATH}/{{id}}", delete, takes()),
)
