"""The parts of the API's description that it has once, in the components."""

from functools import reduce
from typing import Any


def resolved(description: Any, part: Any) -> Any:
    """Return the part, or what it refers to."""
    if "$ref" not in part:
        return part
    return reduce(lambda node, name: node[name], part["$ref"].removeprefix("#/").split("/"), description)


def examples_in(description: Any, content: Any) -> list[Any]:
    """Return the values of a body's examples."""
    return [resolved(description, example)["value"] for example in content.get("examples", {}).values()]
