"""The checks against Stripe's OpenAPI description, and the double's exceptions."""

from typing import Any

import pytest

from accounts import DoubleAccount
from openapi import SchemaMismatch, operation_of, published, response_checks
from stripe_double.operations import OPERATIONS
from stripe_double.parameters import Array, Hash, Parameter, ValueOrHash

# Stripe has these operations, but the reduced description does not.
_NOT_DESCRIBED = {
    "GET /v1/balance_transactions",
    "GET /v1/balance_transactions/{id}",
    "GET /v1/payouts",
    "GET /v1/payouts/{id}",
    "GET /v1/billing_portal/configurations",
    "GET /v1/checkout/sessions/{id}",
    "GET /v1/coupons",
    "GET /v1/coupons/{id}",
    "GET /v1/credit_notes",
    "GET /v1/credit_notes/{id}",
    "GET /v1/invoices/{id}/lines",
    "GET /v1/radar/early_fraud_warnings",
    "GET /v1/radar/early_fraud_warnings/{id}",
    "GET /v1/subscription_items",
    "GET /v1/subscription_schedules/{id}",
    "GET /v1/tax/settings",
    "POST /v1/billing_portal/sessions",
    "POST /v1/checkout/sessions",
    "POST /v1/coupons",
    "POST /v1/invoiceitems",
    "POST /v1/invoices/{id}/remove_lines",
    "POST /v1/payment_methods/{id}/detach",
    "POST /v1/subscription_schedules",
    "POST /v1/subscription_schedules/{id}/release",
}


# 2026-10-28.endive takes an object where the description, one version older, has a word or a number.
_NEWER = {"POST /v1/subscriptions/{subscription_exposed_id} billing_cycle_anchor[type]"}


_DESCRIBED = [route for route in OPERATIONS if f"{route.method} {route.path}" not in _NOT_DESCRIBED]


@pytest.fixture
def customer(account: DoubleAccount) -> dict[str, Any]:
    """Return a customer's raw response."""
    customer: dict[str, Any] = account.create_customer().to_dict()
    return customer


@pytest.mark.parametrize(
    "changes",
    [
        {"favourite_colour": "blue"},
        {"livemode": "false"},
        {"created": None},
        {"tax_exempt": "perhaps"},
        {"address": {"town": "Zug"}},
    ],
)
def test_a_response_that_stripe_could_not_give_is_reported(
    customer: dict[str, Any], changes: dict[str, Any]
) -> None:
    openapi = response_checks(strict=True)
    path = f"/v1/customers/{customer['id']}"
    openapi.check("GET", path, 200, customer)
    with pytest.raises(SchemaMismatch):
        openapi.check("GET", path, 200, {**customer, **changes})
    with pytest.raises(SchemaMismatch):
        openapi.check("GET", "/v1/customers", 200, customer)


def test_a_missing_member_and_a_wrong_expanded_object_are_reported(
    customer: dict[str, Any], account: DoubleAccount
) -> None:
    openapi = response_checks(strict=True)
    with pytest.raises(SchemaMismatch):
        openapi.check_objects({name: item for name, item in customer.items() if name != "created"}, "test")
    intent = account.v1.setup_intents.create({"customer": customer["id"]}).to_dict()
    openapi.check_objects({**intent, "customer": customer}, "test")
    with pytest.raises(SchemaMismatch):
        openapi.check_objects({**intent, "customer": {**customer, "balance": "1"}}, "test")
    with pytest.raises(SchemaMismatch):
        openapi.check_objects({"object": "wallet", "id": "w"}, "test")


def test_every_operation_of_the_double_is_one_of_stripes() -> None:
    offered = {
        (f"{route.method} {route.path}", operation_of(route.method, route.path)) for route in OPERATIONS
    }
    unknown = {operation for operation, described in offered if described not in published()["operations"]}
    assert unknown == _NOT_DESCRIBED


@pytest.mark.parametrize("route", _DESCRIBED, ids=lambda route: f"{route.method} {route.path}")
def test_every_parameter_that_the_double_takes_is_one_that_stripe_takes(route: Any) -> None:
    operation = operation_of(route.method, route.path)
    described = published()["parameters"][operation]
    parameters = Hash(route.parameters.fields)
    assert set(unknown_parameters(parameters, described, operation)) - _NEWER == set()


def unknown_parameters(parameter: Parameter, described: Any, place: str) -> list[str]:
    """Return the places of parameters that Stripe's description does not have."""
    if isinstance(parameter, Array):
        return unknown_parameters(parameter.items, described, place)
    if isinstance(parameter, ValueOrHash):
        return unknown_parameters(parameter.hash, described, place)
    if not isinstance(parameter, Hash):
        return []
    unknown = []
    for name, inner in parameter.fields.items():
        where = f"{place} {name}" if " " not in place.split("/v1/")[1] else f"{place}[{name}]"
        if not isinstance(described, dict) or name not in described:
            unknown.append(where)
        else:
            unknown += unknown_parameters(inner, described[name], where)
    return unknown
