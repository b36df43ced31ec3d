"""The examples in the API's description."""

from typing import Any


def examples_in(description: Any, content: Any) -> list[Any]:
    """Return the values of a body's examples; those of errors stand once, in the components."""
    shared = description["components"]["examples"]
    return [
        (shared[example["$ref"].rpartition("/")[2]] if "$ref" in example else example)["value"]
        for example in content.get("examples", {}).values()
    ]
