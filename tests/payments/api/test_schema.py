"""The API's description names what the payment paths take and return, as the specification has it."""

from typing import Any

import jsonschema
import pytest

from tests.examples import examples_in, resolved
from tests.payments.api.spec import CANCEL, CUSTOMER, PATHS, SETUP_INTENT, SHAPES, UPSERT


@pytest.mark.parametrize(("path", "method"), PATHS.items())
def test_responses_have_the_fields_of_the_specification(description: Any, path: str, method: str) -> None:
    content = description["paths"][path][method]["responses"]["200"]["content"]["application/json"]
    described = resolved(description, content["schema"])
    assert set(described["properties"]) == set(described["required"]) == set(SHAPES[path]["properties"])
    for name, kind in SHAPES[path]["properties"].items():
        assert described["properties"][name]["type"] == kind["type"]
    for example in content["examples"].values():
        jsonschema.validate(example["value"], SHAPES[path])


@pytest.mark.parametrize(
    ("path", "required"), [(UPSERT, ["subscriptionCost"]), (CANCEL, ["cancelImmediately"])]
)
def test_bodies_are_described_also_that_of_the_delete(
    description: Any, path: str, required: list[str]
) -> None:
    content = description["paths"][path][PATHS[path]]["requestBody"]["content"]["application/json"]
    described = resolved(description, content["schema"])
    assert described["required"] == required
    for example in content["examples"].values():
        jsonschema.validate(example["value"], described)


def test_the_defaults_are_described(description: Any) -> None:
    content = description["paths"][UPSERT]["post"]["requestBody"]["content"]["application/json"]
    fields = resolved(description, content["schema"])["properties"]
    assert {name: field["type"] for name, field in fields.items()} == {
        "subscriptionCost": "integer",
        "currency": ["string", "null"],
        "cancelAtEndOfBillingPeriod": ["boolean", "null"],
    }
    assert fields["currency"]["pattern"] == "^[A-Za-z]{3}$"
    for name, default in (("currency", '"usd"'), ("cancelAtEndOfBillingPeriod", "false")):
        assert f"Without it: {default}." in fields[name]["description"]


def test_a_query_is_accepted_if_the_body_is_dropped(description: Any) -> None:
    operation = description["paths"][CANCEL]["delete"]
    (parameter,) = operation["parameters"]
    assert (parameter["in"], parameter["name"]) == ("query", "cancelImmediately")
    assert not parameter.get("required")
    assert not operation["requestBody"].get("required")


def test_every_error_response_is_described(description: Any) -> None:
    def codes(path: str, status: int) -> set[str]:
        responses = description["paths"][path][PATHS[path]]["responses"]
        content = resolved(description, responses[str(status)])["content"]["application/problem+json"]
        return {example["code"] for example in examples_in(description, content)}

    assert codes(UPSERT, 402) == {"payment-method-required", "card-declined", "authentication-required"}
    assert codes(UPSERT, 409) == {"billing-in-progress", "currency-fixed", "payment-processing"}
    assert {"amount-too-small", "amount-too-large", "currency-not-supported"} <= codes(UPSERT, 400)
    assert codes(CANCEL, 404) == {"no-subscription"}
    for path in PATHS:
        assert "billing-unavailable" in codes(path, 503)
    for path in (CUSTOMER, UPSERT, CANCEL):
        assert codes(path, 415) == {"unsupported-media-type"}
        assert codes(path, 413) == {"request-too-large"}


def test_paths_without_a_body_describe_no_body_errors(description: Any) -> None:
    assert not {"400", "413", "415"} & set(description["paths"][SETUP_INTENT]["get"]["responses"])
