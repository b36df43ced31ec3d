"""What the API's description as a whole promises to those who make a client from it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from django.conf import settings
from django.urls import resolve

from credits.models import EntrySource
from gateway.common.errors import NotAuthenticated, all_errors
from gateway.web.pagination import NewestFirst
from relay.models import RelayTransaction
from rewards.models import ModifierType
from tests.examples import examples_in, resolved

HISTORIES = ("/api/user/earnings", "/api/user/transactions")
EARNED = set(EntrySource) - {EntrySource.RELAY_TRANSACTION}


def _objects(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for child in children:
        yield from _objects(child)


def _fields(description: Any, schema: str) -> Any:
    return description["components"]["schemas"][schema]["properties"]


def _values(description: Any, schema: str, field: str) -> set[str]:
    values = _fields(description, schema)[field]
    reference = values.get("$ref") or values["allOf"][0]["$ref"]
    return set(description["components"]["schemas"][reference.rsplit("/", 1)[1]]["enum"])


def test_every_type_is_used_and_each_set_of_values_has_one(description: Any) -> None:
    schemas = description["components"]["schemas"]
    referenced = {part["$ref"].rpartition("/")[2] for part in _objects(description) if "$ref" in part}

    assert set(schemas) - referenced == set()
    values = [tuple(sorted(schema["enum"])) for schema in schemas.values() if "enum" in schema]
    assert len(values) == len(set(values))
    assert not {"BlankEnum", "NullEnum"} & set(schemas)


def test_null_is_a_type_as_openapi_3_1_has_it(description: Any) -> None:
    assert [part for part in _objects(description["components"]) if "nullable" in part] == []


def _json_responses(description: Any) -> Iterator[tuple[str, Any]]:
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            for content in (response.get("content", {}) for response in operation["responses"].values()):
                if "application/json" in content:
                    yield f"{method} {path}", content["application/json"]


def test_every_response_is_an_object_and_its_examples_match_its_schema(description: Any) -> None:
    seen = 0
    for where, content in _json_responses(description):
        shape = {**content["schema"], "components": description["components"]}
        validator = jsonschema.Draft202012Validator({**shape, "type": "object"})
        for name, example in content.get("examples", {}).items():
            assert list(validator.iter_errors(example["value"])) == [], f"{where}, {name}"
            seen += 1
    assert seen > len(description["paths"]) / 2


def test_each_error_has_one_example_that_every_operation_refers_to(description: Any) -> None:
    shared = description["components"]["examples"]
    referred = [
        example["$ref"].removeprefix("#/components/examples/")
        for response in description["components"]["responses"].values()
        for content in response["content"].values()
        for example in content.get("examples", {}).values()
    ]

    assert set(referred) == set(shared)
    assert all(example["value"]["code"] == code for code, example in shared.items())


def test_every_error_response_is_one_that_operations_share(description: Any) -> None:
    errors = [(status, response) for status, response in _responses(description) if status >= "400"]
    names = [response["$ref"].removeprefix("#/components/responses/") for _, response in errors]

    assert set(names) == set(description["components"]["responses"])
    assert len(names) > 5 * len(set(names))
    assert all("$ref" not in response for status, response in _responses(description) if status < "400")
    assert "requestId" not in json.dumps(description["paths"])


def test_the_response_of_an_error_is_named_after_its_errors_or_its_operation(description: Any) -> None:
    def name(path: str, method: str, status: str) -> Any:
        reference = description["paths"][path][method]["responses"][status]["$ref"]
        return reference.removeprefix("#/components/responses/")

    assert name("/api/auth/me", "get", "401") == "NotAuthenticated"
    assert name("/api/auth/nonce", "post", "403") == "HttpsRequiredOrUntrustedCode"
    assert (
        name("/api/relay/execute", "post", "422") == name("/api/lsp15/execute", "post", "422") == "Execute422"
    )
    assert name("/api/postbacks/{network}/{token}", "get", "503") == "Postback503"


def _responses(description: Any) -> Iterator[tuple[str, Any]]:
    for operations in description["paths"].values():
        for operation in operations.values():
            yield from operation["responses"].items()


@pytest.mark.parametrize("path", HISTORIES)
@pytest.mark.parametrize("following", [None, "https://gateway.example/api/user/earnings?cursor=cD0yNQ"])
def test_a_page_may_be_the_last_or_not(description: Any, path: str, following: str | None) -> None:
    content = description["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]
    page: dict[str, Any] = {"next": following, "previous": None, "results": []}
    shape = {**content["schema"], "components": description["components"]}

    jsonschema.Draft202012Validator(shape).validate(page)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(shape).validate({"results": []})


@pytest.mark.parametrize("path", HISTORIES)
def test_the_size_of_a_page_is_described_as_it_is_checked(description: Any, path: str) -> None:
    parameters = {
        parameter["name"]: parameter for parameter in description["paths"][path]["get"]["parameters"]
    }

    assert set(parameters) - {"chainId"} == {"cursor", "limit"}
    assert parameters["limit"]["schema"] == {
        "type": "integer",
        "format": "int64",
        "minimum": 1,
        "maximum": 500,
        "default": 100,
    }


def test_every_integer_has_64_bits_for_generated_clients(description: Any) -> None:
    integers = [part for part in _objects(description) if "integer" in (part.get("type") or [])]

    assert len(integers) > 100
    assert [part for part in integers if part.get("format") != "int64"] == []


@pytest.mark.parametrize("schema", ["TransactionRequest", "UnsignedTransaction"])
def test_numbers_of_256_bits_are_text_and_no_union_for_generated_clients(
    description: Any, schema: str
) -> None:
    fields = _fields(description, schema)

    for name in ("nonce", "validityTimestamps"):
        assert fields[name]["type"] in ("string", ["string", "null"])
        assert re.search(fields[name]["pattern"], str(2**130))


@pytest.mark.parametrize("schema", ["TransactionStatus", "Transaction", "DatedTransaction"])
def test_every_status_is_named(description: Any, schema: str) -> None:
    assert _values(description, schema, "status") == set(RelayTransaction.Status)


def test_every_kind_of_earning_and_modifier_is_named(description: Any) -> None:
    for schema in ("Earning", "DatedEarning"):
        assert _values(description, schema, "credit_source") == EARNED
    assert _values(description, "Modifier", "modifier_type") == set(ModifierType)


@pytest.mark.parametrize("path", ["/api/lsp15/execute", "/api/lsp15/quota"])
def test_paths_without_a_token_speak_of_none(description: Any, path: str) -> None:
    ours = {kind.code for kind in all_errors() if issubclass(kind, NotAuthenticated)}
    mentions = {
        example["code"]
        for status, response in description["paths"][path]["post"]["responses"].items()
        if status >= "400"
        for content in resolved(description, response)["content"].values()
        for example in examples_in(description, content)
    }

    assert "profile-not-registered" in mentions
    assert mentions.isdisjoint(ours)


def test_every_response_that_requires_waiting_describes_retry_after(description: Any) -> None:
    waits = [
        resolved(description, response)
        for status, response in _responses(description)
        if status in {"429", "503"}
    ]
    assert waits
    assert all(result["headers"]["Retry-After"]["schema"]["type"] == "integer" for result in waits)


def test_the_lengths_of_bytes_are_described_as_they_are_checked(description: Any) -> None:
    transaction = _fields(description, "TransactionRequest")
    signature, abi = transaction["signature"], transaction["abi"]

    assert (signature["minLength"], signature["maxLength"]) == (len("0x") + 2 * 64, len("0x") + 2 * 68)
    assert (abi["minLength"], abi["maxLength"]) == (10, len("0x") + 2 * settings.RELAY_MAX_PAYLOAD_BYTES)


def test_the_description_explains_what_no_single_path_documents(description: Any) -> None:
    text = description["info"]["description"]
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)

    assert headings == ["Sign in", "Numbers", "Errors", "Repeating requests", "Pages", "Rates"]
    assert "Idempotency-Key" in text
    assert "Retry-After" in text


def test_every_path_that_it_names_is_one_of_the_service(description: Any) -> None:
    text = description["info"]["description"]
    named = {path for _, path in re.findall(r"(GET|POST) (/[\w/]+)", text)}
    linked = set(re.findall(r"\]\(([^)]+)\)", text))

    assert named
    assert named <= set(description["paths"])
    assert linked == {"/problems"}
    assert all(resolve(path) for path in linked)
    assert (Path(settings.BASE_DIR) / re.findall(r"`(docs/[\w.]+)`", text)[0]).exists()


def test_the_sizes_of_pages_are_described_as_they_are_checked(description: Any) -> None:
    text = " ".join(description["info"]["description"].split())
    assert f"({NewestFirst.page_size} by default, at most {NewestFirst.max_page_size})" in text


def test_a_generated_client_requires_no_optional_member(description: Any) -> None:
    requests = [name for name in description["components"]["schemas"] if name.endswith("Request")]

    for name in requests:
        assert [part for part in _objects(_fields(description, name)) if "default" in part] == [], name
    assert _fields(description, "UpsertRequest")["currency"]["description"].endswith('Without it: "usd".')


def test_every_operation_declares_its_authentication_and_has_a_described_tag(description: Any) -> None:
    described = {tag["name"] for tag in description["tags"] if tag["description"]}
    member, token = {"sponsorMember"}, {"accessToken"}
    of_sponsors = ([{"sponsorKey"}], [{"sponsorKey"}, member, token], [member, token], [member])

    for operation in (each for path in description["paths"].values() for each in path.values()):
        kinds = [set(kind) for kind in operation["security"]]
        assert kinds in ([], [{"accessToken"}], *of_sponsors)
        assert set(operation["tags"]) <= described
    assert description["servers"][0]["url"] == "/"
