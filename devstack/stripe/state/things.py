"""A thing of the account: a JSON object with `object` and `id`; names that start with `_` stay inside."""

import copy
import secrets
import string
from typing import Any

Thing = dict[str, Any]
_ALPHABET = string.ascii_letters + string.digits


def new_id(prefix: str, length: int = 24) -> str:
    """Return an id that nothing else has."""
    return f"{prefix}_{''.join(secrets.choice(_ALPHABET) for _ in range(length))}"


def public(value: Any) -> Any:
    """Return a copy of the value without the names that stay inside."""
    if isinstance(value, dict):
        return {key: public(item) for key, item in value.items() if not key.startswith("_")}
    if isinstance(value, list):
        return [public(item) for item in value]
    return copy.copy(value)


def difference(before: Thing, after: Thing) -> Thing:
    """Return the former values of what changed, nested as in the thing."""
    changed: Thing = {}
    for key in before.keys() | after.keys():
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        changed[key] = difference(old, new) if isinstance(old, dict) and isinstance(new, dict) else old
    return changed
