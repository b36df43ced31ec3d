"""Stripe's own published shapes, and the question whether an answer has them."""

import functools
import json
import re
from pathlib import Path
from typing import Any

import stripe
from jsonschema import Draft202012Validator

_FILE = Path(__file__).parents[2] / "data" / "stripe-shapes.json"
# Names of 2026-10-28.endive that the published shapes, one version older, do not have yet.
_NEWER = {"subscription": {"status_details"}, "invoice": {"status_details"}}
_UNPUBLISHED = {"credit_note": stripe.CreditNote}
Schema = dict[str, Any]


class NotStripes(AssertionError):
    """The answer is not one that Stripe could give."""


class Shapes:
    """Checks answers; strictly, they may not even have a name that Stripe does not have."""

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self._published = published()
        schemas = self._published["schemas"]
        self._definitions = {name: self._plain(schema, name) for name, schema in schemas.items()}

    def check(self, method: str, path: str, status: int, body: Any) -> None:
        """Raise `NotStripes` unless the answer to this request has Stripe's shape."""
        operation = operation_of(method, path)
        if status >= 400:
            self._validate(body, {"$ref": "#/$defs/error"}, f"{operation} {status}")
        elif operation in self._published["operations"]:
            self._validate(body, self._plain(self._published["operations"][operation]), operation)
        self.check_things(body, operation)

    def check_things(self, body: Any, place: str) -> None:
        """Raise `NotStripes` unless everything inside that is one of Stripe's objects has its shape."""
        if isinstance(body, list):
            for item in body:
                self.check_things(item, place)
        if not isinstance(body, dict):
            return
        kind = body.get("object")
        if isinstance(kind, str) and kind != "list":
            self._check_thing(body, f"deleted_{kind}" if body.get("deleted") else kind, f"{place} {kind}")
        for name, item in body.items():
            if name != "previous_attributes":
                self.check_things(item, f"{place} .{name}")

    def _check_thing(self, body: Schema, kind: str, place: str) -> None:
        if kind in self._definitions:
            self._validate(body, {"$ref": f"#/$defs/{kind}"}, place)
            return
        if kind not in _UNPUBLISHED:
            raise NotStripes(f"{place}: Stripe has no object {kind}")
        strangers = body.keys() - _UNPUBLISHED[kind].__annotations__.keys() - {"object"}
        if strangers:
            raise NotStripes(f"{place}: Stripe's {kind} has no {sorted(strangers)}")

    def _validate(self, body: Any, schema: Schema, place: str) -> None:
        errors = self._validator(json.dumps(schema)).iter_errors(body)
        first = next(iter(errors), None)
        if first is not None:
            raise NotStripes(f"{place}: {first.json_path}: {first.message[:300]}")

    @functools.lru_cache  # noqa: B019 (two instances live as long as the run)
    def _validator(self, schema: str) -> Draft202012Validator:
        return Draft202012Validator({**json.loads(schema), "$defs": self._definitions})

    def _plain(self, schema: Schema, name: str = "") -> Schema:
        """Return an OpenAPI 3.0 schema as a JSON Schema."""
        if "$ref" in schema:
            return {"$ref": schema["$ref"].replace("#/schemas/", "#/$defs/")}
        plain: Schema = {
            key: schema[key]
            for key in ("type", "enum", "required", "pattern", "additionalProperties")
            if key in schema
        }
        if "properties" in schema:
            inner = {key: self._inner(item) for key, item in schema["properties"].items()}
            plain["properties"] = {**inner, **{key: {} for key in _NEWER.get(name, ())}}
            if self._strict:
                plain["additionalProperties"] = False
        if isinstance(plain.get("additionalProperties"), dict):
            plain["additionalProperties"] = self._plain(plain["additionalProperties"])
        if "items" in schema:
            plain["items"] = self._inner(schema["items"])
        if "anyOf" in schema:
            plain["anyOf"] = [self._plain(item) for item in schema["anyOf"]]
        return {"anyOf": [plain, {"type": "null"}]} if schema.get("nullable") and plain else plain

    def _inner(self, schema: Schema) -> Schema | bool:
        """Return the schema of a part; one without a shape is carried empty, so strictly it must be empty."""
        if self._strict and not schema.keys() - {"nullable"}:
            return {"type": "null"} if schema else False
        return self._plain(schema)


@functools.cache
def published() -> Schema:
    """Return the carried part of Stripe's description: operations, their parameters, and schemas."""
    found: Schema = json.loads(_FILE.read_text())
    return found


def operation_of(method: str, path: str) -> str:
    """Return the operation as Stripe's description names it; the bare request where it has none."""
    for operation in published()["operations"]:
        known_method, template = operation.split(" ", 1)
        pattern = re.sub(r"\{\w+\}", "[^/]+", template)
        if known_method == method and re.fullmatch(pattern, path):
            return str(operation)
    return f"{method} {path}"
