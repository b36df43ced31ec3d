"""The shape of Stripe's objects: which members they have, and of which JSON types."""

from collections import defaultdict
from typing import Any

_FREE = {"metadata", "previous_attributes"}
Shapes = dict[str, dict[str, set[str]]]


def add_shapes(value: Any, shapes: Shapes, *, kind: str = "", place: str = "") -> None:
    """Add the members of every object of Stripe's inside `value`, by the object's kind and the member's place."""
    if isinstance(value, list):
        for item in value:
            add_shapes(item, shapes, kind=kind, place=f"{place}[]")
            if kind:
                shapes[kind][f"{place}[]"].add(_type(item))
        return
    if not isinstance(value, dict):
        return
    if isinstance(value.get("object"), str):
        is_list = value["object"] == "list" and kind
        kind, place = (kind, place) if is_list else (_kind(value), "")
    for name, item in value.items():
        where = f"{place}.{name}".lstrip(".")
        if kind:
            shapes[kind][where].add(_type(item))
        if name not in _FREE:
            add_shapes(item, shapes, kind=kind, place=where)


def shapes_of(answers: list[Any]) -> Shapes:
    """Return the shapes of all objects in these responses."""
    shapes: Shapes = defaultdict(lambda: defaultdict(set))
    for result in answers:
        add_shapes(result, shapes)
    return shapes


def differences(ours: Shapes, theirs: Shapes) -> list[str]:
    """Return a line `kind.member: text` for each difference; of an inner member only where both have the outer."""
    found = []
    for kind in sorted(ours.keys() & theirs.keys()):
        here, there = ours[kind], theirs[kind]
        for place in sorted(here.keys() | there.keys()):
            if place in here and place in there:
                if not _agree(here[place], there[place]):
                    found.append(
                        f"{kind}.{place}: {_text(here[place])}, at stripe-mock {_text(there[place])}"
                    )
            elif _outer_is_in(place, here) and _outer_is_in(place, there):
                where = "only at the double" if place in here else "only at stripe-mock"
                found.append(f"{kind}.{place}: {where}")
    return found


def _agree(here: set[str], there: set[str]) -> bool:
    """Return whether a type occurs on both sides; null has no type to compare."""
    return bool(here & there) or not (here - {"null"}) or not (there - {"null"})


def _outer_is_in(place: str, members: dict[str, set[str]]) -> bool:
    """Return whether the object or list that holds the member occurs with a value on this side."""
    if place.endswith("[]"):
        return False  # an empty list has no types to compare
    outer = place.rpartition(".")[0]
    return not outer or (outer in members and members[outer] != {"null"} and "hash" in members[outer])


def _kind(value: dict[str, Any]) -> str:
    return f"deleted {value['object']}" if value.get("deleted") else str(value["object"])


def _text(types: set[str]) -> str:
    return " or ".join(sorted(types))


def _type(value: Any) -> str:
    if isinstance(value, dict):
        return f"{value['object']} object" if isinstance(value.get("object"), str) else "hash"
    names = {bool: "boolean", int: "number", float: "number", str: "text", list: "list", type(None): "null"}
    return names[type(value)]
