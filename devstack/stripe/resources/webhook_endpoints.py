"""Webhook endpoints: the URLs that events are sent to."""

import secrets
from typing import Any

from devstack.stripe.account import API_VERSION, Account, find
from devstack.stripe.errors import InvalidRequest
from devstack.stripe.parameters import CURSORS, Array, Boolean, Enum, Metadata, Parameter, String, takes
from devstack.stripe.routing import Route, paginate, retrieve_route
from devstack.stripe.store import Resource, apply_fields, new_id

_PATH = "/v1/webhook_endpoints"
_NOUN = "webhook endpoint"
_DEFAULT = "we_default"
_FIELDS: dict[str, Parameter] = {
    "description": String(can_unset=True),
    "enabled_events": Array(String()),
    "metadata": Metadata(),
    "url": String(),
}


def set_default_endpoint(account: Account, url: str, secret: str) -> Resource:
    """Send every event to the URL, signed with the secret; a second call moves the same endpoint."""
    endpoint = account.store.get("webhook_endpoint", _DEFAULT)
    endpoint = endpoint or account.add(_new_endpoint(account, _DEFAULT))
    endpoint.update(url=url, enabled_events=["*"], status="enabled", _secret=secret)
    return endpoint


def create(account: Account, params: dict[str, Any]) -> Resource:
    """Send events to a URL; this response alone shows the secret that signs them."""
    _require_http(params["url"])
    endpoint = account.add(_new_endpoint(account, new_id("we")))
    apply_fields(endpoint, params, _FIELDS)
    return {**endpoint, "secret": endpoint["_secret"]}


def update(account: Account, params: dict[str, Any], identifier: str) -> Resource:
    """Change an endpoint; a disabled one is sent no new events."""
    endpoint = find(account, "webhook_endpoint", identifier, _NOUN)
    if "url" in params:
        _require_http(params["url"])
    if "disabled" in params:
        endpoint["status"] = "disabled" if params["disabled"] else "enabled"
    apply_fields(endpoint, params, _FIELDS)
    return endpoint


def list_all(account: Account, params: dict[str, Any]) -> Resource:
    """Return a page of endpoints."""
    return paginate(account.store.all("webhook_endpoint"), params, _PATH)


def delete(account: Account, _params: dict[str, Any], identifier: str) -> Resource:
    """Delete an endpoint; what was still to be sent there is not sent."""
    find(account, "webhook_endpoint", identifier, _NOUN)
    account.store.remove("webhook_endpoint", identifier)
    return {"object": "webhook_endpoint", "id": identifier, "deleted": True}


def _new_endpoint(account: Account, identifier: str) -> Resource:
    return {
        "object": "webhook_endpoint",
        "id": identifier,
        "api_version": API_VERSION,
        "application": None,
        "created": account.now,
        "description": None,
        "livemode": False,
        "metadata": {},
        "status": "enabled",
        "_secret": f"whsec_{secrets.token_hex(24)}",
    }


def _require_http(url: str) -> None:
    if not url.startswith(("http://", "https://")):
        message = f"Invalid URL: {url}. URLs must begin with https:// or http://."
        raise InvalidRequest(message, code="url_invalid", param="url")


_CREATE = takes("enabled_events", "url", **_FIELDS, api_version=Enum((API_VERSION,)))
ROUTES = (
    Route("POST", _PATH, create, _CREATE),
    Route("GET", _PATH, list_all, takes(**CURSORS)),
    retrieve_route(_PATH, "webhook_endpoint", _NOUN),
    Route("POST", f"{_PATH}/{{id}}", update, takes(**_FIELDS, disabled=Boolean())),
    Route("DELETE", f"{_PATH}/{{id}}", delete, takes()),
)
