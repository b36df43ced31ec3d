"""
Serializer fields of the wire: addresses, hex bytes, hashes, 256-bit numbers.

They check only the form. A JSON number above 2^53 loses digits in most clients, so requests may send 256-bit numbers
as decimal or 0x-hex text. Responses always have text, because clients of typed languages need one type.
"""

import functools
import re
import threading
from itertools import islice
from typing import Any, ClassVar

from django.http import HttpResponse
from drf_spectacular.drainage import set_override
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.renderers import JSONRenderer

from gateway.common.errors import WrongChecksum
from gateway.common.fields import UINT256_MAX, checksum

# An error names at most this many unknown members of an object.
_UNKNOWN_NAMED = 20
_HEX = re.compile(r"0[xX](?:[0-9a-fA-F]{2})*\Z")
_DECIMAL = re.compile(r"[0-9]{1,78}\Z")
_HEX_NUMBER = re.compile(r"0[xX][0-9a-fA-F]{1,64}\Z")


class BodySerializer(serializers.Serializer[Any]):
    """The schema of a request's body or of an object in it; errors use JSON's terms."""

    # Whether unknown members are refused instead of ignored. One in another case always is.
    is_strict: ClassVar[bool] = False

    @classmethod
    def read(cls, data: Any) -> dict[str, Any]:
        """
        Return the validated members of a body.

        Raises:
            ValidationError: the body is invalid, as with `is_valid(raise_exception=True)`.
        """
        validated: dict[str, Any] = _shared(cls).run_validation(data)
        return validated

    def run_validation(self, data: Any = serializers.empty) -> Any:
        if data is not serializers.empty and not isinstance(data, dict):
            fault = f"Expected an object, got {_kind_of(data)}."
            raise serializers.ValidationError({"non_field_errors": [fault]}, code="invalid")
        if isinstance(data, dict) and (unknown := data.keys() - self.fields.keys()):
            self._refuse(sorted(unknown))
        return super().run_validation(data)

    def _refuse(self, unknown: list[str]) -> None:
        """Refuse misspelled members, which would be ignored otherwise, and all unknown ones if the schema is strict."""
        members = {_folded(name): name for name in list(self.fields.keys())}
        faults = {
            name: f"The member is named `{members[_folded(name)]}`."
            if _folded(name) in members
            else "There is no member of this name."
            for name in unknown
            if self.is_strict or _folded(name) in members
        }
        if faults:
            raise serializers.ValidationError(dict(islice(faults.items(), _UNKNOWN_NAMED)), code="unknown")


def _folded(name: str) -> str:
    """Return the name without what camelCase, snake_case and kebab-case differ in."""
    return name.translate({ord("_"): None, ord("-"): None}).lower()


@functools.cache
def _shared(kind: type[BodySerializer]) -> BodySerializer:
    """Return a shared instance: it keeps no data, and each new instance would copy every field."""
    return kind()


class _OfThread(threading.local):
    """A thread's serializers of responses, each with its context."""

    def __init__(self) -> None:
        self.by_class: dict[type[serializers.Serializer[Any]], tuple[Any, dict[str, Any]]] = {}


_of_thread = _OfThread()


def rendered(kind: type[serializers.Serializer[Any]], instance: object, **context: Any) -> dict[str, Any]:
    """Return `kind(instance, context=context).data`, from a serializer that each thread builds once."""
    if kind not in _of_thread.by_class:
        own: dict[str, Any] = {}
        _of_thread.by_class[kind] = kind(context=own), own
    serializer, shown = _of_thread.by_class[kind]
    shown.clear()
    shown.update(context)
    members: dict[str, Any] = serializer.to_representation(instance)
    return members


def json_bytes(response: dict[str, Any]) -> bytes:
    """Return the data as a JSON response."""
    rendered_body: bytes = JSONRenderer().render(response)
    return rendered_body


def json_response(response: dict[str, Any]) -> HttpResponse:
    """Return the same response as REST framework's `Response`, without the cost of Django's template responses."""
    return HttpResponse(json_bytes(response), content_type="application/json")


def _kind_of(data: object) -> str:
    if isinstance(data, bool):
        return "true or false"
    if isinstance(data, int | float):
        return "a number"
    return {type(None): "null", list: "a list"}.get(type(data), "text")


@extend_schema_field({"type": "string", "pattern": "^0x[0-9a-fA-F]{40}$"})
class AddressField(serializers.Field[str, Any, str, Any]):
    """
    A 20-byte address in lower case, in upper case, or with the right EIP-55 checksum; becomes its EIP-55 form.

    Raises:
        WrongChecksum: it is in mixed case and the EIP-55 checksum is wrong.
    """

    default_error_messages = {"invalid": "Send a 20-byte address as 0x and 40 hex digits."}

    def to_internal_value(self, data: Any) -> str:
        try:
            address = checksum(data if isinstance(data, str) else "")
        except ValueError:
            self.fail("invalid")
        digits = data[2:]
        if digits != address[2:] and digits not in (digits.lower(), digits.upper()):
            raise WrongChecksum(f"The checksum (EIP-55) of {data} is wrong. Copy the address again.")
        return address

    def to_representation(self, value: str) -> str:
        return value


class HexField(serializers.Field[bytes, Any, str, Any]):
    """Bytes as 0x-hex, between `min_bytes` and `max_bytes` long; becomes `bytes`."""

    default_error_messages = {
        "invalid": "Send bytes as 0x and an even number of hex digits.",
        "length": "Send between {least} and {most} bytes, not {count}.",
    }

    def __init__(self, *, min_bytes: int = 0, max_bytes: int, **kwargs: Any) -> None:
        self.min_bytes, self.max_bytes = min_bytes, max_bytes
        super().__init__(**kwargs)
        lengths = {"minLength": 2 + 2 * min_bytes, "maxLength": 2 + 2 * max_bytes}
        # Does what `extend_schema_field` does for a class, with the lengths of this instance.
        set_override(self, "field", {"type": "string", "pattern": "^0x([0-9a-fA-F]{2})*$", **lengths})

    def to_internal_value(self, data: Any) -> bytes:
        if not isinstance(data, str) or not _HEX.match(data):
            self.fail("invalid")
        count = len(data) // 2 - 1
        if not self.min_bytes <= count <= self.max_bytes:
            self.fail("length", least=self.min_bytes, most=self.max_bytes, count=count)
        return bytes.fromhex(data[2:])

    def to_representation(self, value: bytes) -> str:
        return "0x" + value.hex()


@extend_schema_field({"type": "string", "pattern": "^0x[0-9a-fA-F]{64}$"})
class HashField(serializers.Field[str, Any, str, Any]):
    """A 32-byte hash; becomes lower-case 0x-hex."""

    default_error_messages = {"invalid": "Send a 32-byte hash as 0x and 64 hex digits."}

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or len(data) != 66 or not _HEX.match(data):
            self.fail("invalid")
        return data.lower()

    def to_representation(self, value: str) -> str:
        return value


@extend_schema_field({"type": "string", "pattern": "^([0-9]{1,78}|0x[0-9a-fA-F]{1,64})$"})
class Uint256Field(serializers.Field[int, Any, str, Any]):
    """
    A whole number below 2^256 as JSON integer, decimal text or 0x-hex text; becomes `int`.

    It is described as text: of a union, generators make types without members or of 32 bits.
    """

    default_error_messages = {
        "invalid": "Send a whole number as JSON integer, decimal text or 0x-hex text.",
        "float": "Send an integer below 2^53, or text; a larger float or a fraction loses digits.",
        "range": "The number must be between 0 and 2^256 - 1.",
    }

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, float):
            self.fail("float")
        if isinstance(data, int) and not isinstance(data, bool):
            number = data
        elif isinstance(data, str) and _DECIMAL.match(data):
            number = int(data)
        elif isinstance(data, str) and _HEX_NUMBER.match(data):
            number = int(data, 16)
        else:
            self.fail("invalid")
        if not 0 <= number <= UINT256_MAX:
            self.fail("range")
        return number

    def to_representation(self, value: int) -> str:
        return str(value)


@extend_schema_field(OpenApiTypes.INT64)
class StrictIntegerField(serializers.IntegerField):
    """A JSON integer; text, fractions and booleans are refused."""

    def to_internal_value(self, data: Any) -> int:
        if not isinstance(data, int) or isinstance(data, bool):
            self.fail("invalid")
        return super().to_internal_value(data)
