"""The responses of the payment paths as the service's specification has them: exactly these fields, of these types."""

from typing import Any

from jsonschema import Draft202012Validator

from tests.relay.api.conftest import ApiResponse

CUSTOMER = "/api/payments/createCustomer"
SETUP_INTENT = "/api/payments/getSetupIntent"
UPSERT = "/api/payments/upsertSubscription"
CANCEL = "/api/payments/cancelSubscription"
# Each path with the one method that it knows.
PATHS = {CUSTOMER: "post", SETUP_INTENT: "get", UPSERT: "post", CANCEL: "delete"}


def _exactly(**fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


_TEXT = {"type": "string", "minLength": 1}
SHAPES = {
    CUSTOMER: _exactly(
        walletAddress={"type": "string", "pattern": "^0x[0-9a-fA-F]{40}$"}, paymentsCustomerId=_TEXT
    ),
    SETUP_INTENT: _exactly(clientSecret=_TEXT),
    # A currency's symbol, then the decimal amount with two decimals.
    UPSERT: _exactly(
        subscriptionId=_TEXT,
        subscriptionFor=_TEXT,
        subscriptionAmount={"type": "string", "pattern": r"^\D+[0-9]+\.[0-9]{2}$"},
    ),
    CANCEL: _exactly(
        success={"type": "boolean"}, customerIdCancelledFor=_TEXT, cancelledInstantly={"type": "boolean"}
    ),
}


def as_specified(answer: ApiResponse, path: str) -> dict[str, Any]:
    """Return the body of a good response, which has exactly the fields of the specification."""
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json"), answer.body
    Draft202012Validator(SHAPES[path]).validate(answer.body)
    return answer.body
