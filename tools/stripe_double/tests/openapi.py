"""Stripe's published OpenAPI description, and the check of responses against it."""

import functools
import json
import re
from pathlib import Path
from typing import Any

import stripe
from jsonschema_rs import Draft202012Validator

_FILE = Path(__file__).with_name("stripe-shapes.json")
# Members of 2026-10-28.endive that the description, one version older, does not have yet.
_NEWER = {"subscription": {"status_details"}, "invoice": {"status_details"}}
_UNPUBLISHED = {
    "credit_note": stripe.CreditNote,
    "checkout.session": stripe.checkout.Session,
    "billing_portal.session": stripe.billing_portal.Session,
    "tax.settings": stripe.tax.Settings,
    "billing_portal.configuration": stripe.billing_portal.Configuration,
    "balance": stripe.Balance,
    "payout": stripe.Payout,
    "coupon": stripe.Coupon,
    "invoiceitem": stripe.InvoiceItem,
    "subscription_schedule": stripe.SubscriptionSchedule,
    "radar.early_fraud_warning": stripe.radar.EarlyFraudWarning,
}
Schema = dict[str, Any]


class SchemaMismatch(AssertionError):
    """The response does not match Stripe's schema."""


class OpenApi:
    """Checks responses; in strict mode members unknown to Stripe fail."""

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self._published = published()
        schemas = self._published["schemas"]
        self._definitions = {name: self._plain(schema, name) for name, schema in schemas.items()}

    def check(self, method: str, path: str, status: int, body: Any) -> None:
        """Raise `SchemaMismatch` unless the response to this request matches its schema."""
        operation = operation_of(method, path)
        if status >= 400:
            self._validate(body, {"$ref": "#/$defs/error"}, f"{operation} {status}")
        elif operation in self._published["operations"]:
            self._validate(body, self._plain(self._published["operations"][operation]), operation)
        self.check_objects(body, operation)

    def check_objects(self, body: Any, place: str) -> None:
        """Raise `SchemaMismatch` unless each of Stripe's objects inside matches its schema."""
        if isinstance(body, list):
            for item in body:
                self.check_objects(item, place)
        if not isinstance(body, dict):
            return
        kind = body.get("object")
        if isinstance(kind, str) and kind != "list":
            self._check_object(body, f"deleted_{kind}" if body.get("deleted") else kind, f"{place} {kind}")
        for name, item in body.items():
            if name != "previous_attributes":
                self.check_objects(item, f"{place} .{name}")

    def _check_object(self, body: Schema, kind: str, place: str) -> None:
        if kind in self._definitions:
            self._validate(body, {"$ref": f"#/$defs/{kind}"}, place)
            return
        if kind not in _UNPUBLISHED:
            raise SchemaMismatch(f"{place}: Stripe has no object {kind}")
        unknown = body.keys() - _UNPUBLISHED[kind].__annotations__.keys() - {"object"}
        if unknown:
            raise SchemaMismatch(f"{place}: Stripe's {kind} has no {sorted(unknown)}")

    def _validate(self, body: Any, schema: Schema, place: str) -> None:
        errors = self._validator(json.dumps(schema)).iter_errors(body)
        first = next(iter(errors), None)
        if first is not None:
            member = ".".join(map(str, first.instance_path))
            raise SchemaMismatch(f"{place}: {member}: {first.message[:300]}")

    @functools.lru_cache  # noqa: B019 (only two instances exist)
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
        """Return the schema of a member; in strict mode one without a type in the reduced file must be empty."""
        if self._strict and not schema.keys() - {"nullable"}:
            return {"type": "null"} if schema else False
        return self._plain(schema)


@functools.cache
def response_checks(*, strict: bool) -> OpenApi:
    """Return the checker of responses, strict or not."""
    return OpenApi(strict=strict)


@functools.cache
def published() -> Schema:
    """Return the reduced description: operations, their parameters, and schemas."""
    description: Schema = json.loads(_FILE.read_text())
    return description


def operation_of(method: str, path: str) -> str:
    """Return the operation as Stripe's description names it; the bare request where it has none."""
    if f"{method} {path}" in published()["operations"]:
        return f"{method} {path}"
    for operation in published()["operations"]:
        operation_method, template = operation.split(" ", 1)
        pattern = re.sub(r"\{\w+\}", "[^/]+", template)
        if operation_method == method and re.fullmatch(pattern, path):
            return str(operation)
    return f"{method} {path}"
