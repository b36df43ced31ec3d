"""Roots and proofs as JSON."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

_PATH = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"left": {"type": "string"}, "right": {"type": "string"}},
        "minProperties": 1,
        "maxProperties": 1,
    },
}
_SALTED = {
    "type": "object",
    "required": ["salt", "text"],
    "properties": {"salt": {"type": "string"}, "text": {"type": "string"}},
}
_DISCLOSED = {
    "type": ["object", "null"],
    "properties": {"profile": _SALTED, "reason": _SALTED},
}


class RootSerializer(serializers.Serializer[Any]):
    """A root; each one names the hash of the one before it."""

    text = serializers.CharField(
        help_text="What is signed: JSON with `closedAt`, `entries`, `lastEntry`, `previous`, `root` and `tree`."
    )
    signature = serializers.CharField(help_text="ES256 over the UTF-8 bytes of `text`: r and s in hex.")
    keyId = serializers.CharField(help_text="The `kid` of the key.")


@extend_schema_field(_PATH)
class PathField(serializers.ReadOnlyField):
    """Hashes of siblings, from the leaf up."""


@extend_schema_field(_DISCLOSED)
class DisclosedField(serializers.ReadOnlyField):
    """The texts behind the salted hashes."""


class ProofSerializer(serializers.Serializer[Any]):
    entry = serializers.IntegerField()
    leaf = serializers.CharField(
        allow_null=True, help_text="The entry as it was hashed, JSON; null until a root is closed over it."
    )
    path = PathField(
        help_text="Hashes of the siblings from the leaf to the root, each by the side on which it stands."
    )
    root = RootSerializer(allow_null=True)
    disclosed = DisclosedField(
        help_text="`profile` and `reason` with their salts. SHA-256 of salt and text is what the leaf has of them."
    )
