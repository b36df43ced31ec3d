"""The API's description names every path of sign-in, its refusals and a real example of each body."""

from functools import partial
from typing import Any

import jsonschema
import jwt
import pytest
from jwt import PyJWK

from gateway.chain.signatures import personal_sign_digest, recover_address
from gateway.common.errors import NotAuthenticated, all_errors
from tests.examples import examples_in, resolved
from users.api import schema

PATHS = {
    "/api/auth/nonce": "post",
    "/api/auth/verify": "post",
    "/api/auth/refresh": "post",
    "/api/auth/logout": "post",
    "/api/auth/me": "get",
    "/.well-known/jwks.json": "get",
}


def _codes(description: Any, path: str, status: int) -> set[str]:
    responses = description["paths"][path][PATHS[path]]["responses"]
    content = resolved(description, responses[str(status)])["content"]["application/problem+json"]
    return {example["code"] for example in examples_in(description, content)}


@pytest.mark.parametrize(("path", "method"), PATHS.items())
def test_each_path_is_described_with_examples(description: Any, path: str, method: str) -> None:
    operation = description["paths"][path][method]

    assert operation["summary"]
    assert operation["description"]
    assert operation["responses"]["200"]["content"]["application/json"]["examples"]
    if "requestBody" in operation:
        assert operation["requestBody"]["content"]["application/json"]["examples"]


def test_only_public_operations_need_no_token(description: Any) -> None:
    assert {path for path, method in PATHS.items() if description["paths"][path][method].get("security")} == {
        "/api/auth/logout",
        "/api/auth/me",
    }
    assert description["components"]["securitySchemes"]["accessToken"]["scheme"] == "bearer"


def test_verify_names_every_way_of_being_refused(description: Any) -> None:
    codes = partial(_codes, description, "/api/auth/verify")

    assert codes(401) == {
        "nonce-unknown",
        "nonce-expired",
        "nonce-used",
        "nonce-foreign",
        "signature-not-by-controller",
        "account-inactive",
        "account-deleted",
    }
    assert codes(403) == {"untrusted-code", "sign-permission-missing", "https-required"}
    assert codes(422) == {"profile-not-deployed"}
    assert {"chain-unavailable", "service-unavailable"} <= codes(503)


def test_the_me_operation_documents_every_error_of_an_invalid_token(description: Any) -> None:
    reasons = {kind.code for kind in all_errors() if issubclass(kind, NotAuthenticated)}

    assert _codes(description, "/api/auth/me", 401) == reasons - {"account-banned"}
    assert "account-banned" in _codes(description, "/api/auth/me", 403)
    assert len(reasons) == 13


@pytest.mark.parametrize(("path", "method"), PATHS.items())
def test_the_examples_have_the_described_shape(description: Any, path: str, method: str) -> None:
    operation = description["paths"][path][method]
    bodies = [operation["requestBody"]] if "requestBody" in operation else []
    checked = 0
    for body in [*bodies, *operation["responses"].values()]:
        for content in resolved(description, body)["content"].values():
            for example in examples_in(description, content):
                jsonschema.validate(example, {**content["schema"], "components": description["components"]})
                checked += 1
    assert checked > len(bodies)


def test_the_examples_are_of_one_sign_in_and_its_signature_is_valid() -> None:
    (_, result), (request, *_) = schema.NONCE_EXAMPLES, schema.VERIFY_EXAMPLES
    digest = personal_sign_digest(result.value["message"].encode())
    signature = bytes.fromhex(request.value["signature"][2:])
    access_token = schema.VERIFY_EXAMPLES[-1].value["access"]

    assert recover_address(digest, signature) == schema.ME_EXAMPLES[0].value["controller"]
    claims = jwt.decode(
        access_token,
        PyJWK(schema.KEYS_EXAMPLES[0].value["keys"][0]),
        algorithms=["ES256"],
        options={"verify_exp": False, "verify_aud": False, "verify_iat": False},
    )
    assert claims["sid"] == schema.ME_EXAMPLES[0].value["sessionId"]
    assert claims["address"] == result.value["message"].split("\n")[1]
