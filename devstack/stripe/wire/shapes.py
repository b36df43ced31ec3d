"""The shapes that parameters may have; whatever has another shape is refused by name."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from devstack.stripe.wire.refusals import Malformed


class Shape(ABC):
    """One kind of value."""

    @abstractmethod
    def read(self, value: Any, place: str) -> Any:
        """Return the value as Python knows it; `place` is its name on the wire."""


@dataclass
class Text(Shape):
    """A string; an empty one means None where that may be said."""

    longest: int = 5000
    clearable: bool = False

    def read(self, value: Any, place: str) -> str | None:
        if not isinstance(value, str):
            raise Malformed(f"Invalid string: {value}", param=place)
        if value == "":
            if self.clearable:
                return None
            raise Malformed(
                f"You passed an empty string for '{place}'. We assume empty values are an attempt to unset a "
                f"parameter; however '{place}' cannot be unset.",
                code="parameter_invalid_empty",
                param=place,
            )
        if len(value) > self.longest:
            raise Malformed(f"Invalid string: too long (max {self.longest})", param=place)
        return value


@dataclass
class Integer(Shape):
    """A whole number between two others."""

    least: int | None = None
    most: int | None = None

    def read(self, value: Any, place: str) -> int:
        if not isinstance(value, str) or not value.lstrip("-").isdecimal():
            raise Malformed(f"Invalid integer: {value}", code="parameter_invalid_integer", param=place)
        number = int(value)
        if self.least is not None and number < self.least:
            raise Malformed(
                f"This value must be greater than or equal to {self.least}.",
                code="parameter_invalid_integer",
                param=place,
            )
        if self.most is not None and number > self.most:
            raise Malformed(
                f"This value must be less than or equal to {self.most}.",
                code="parameter_invalid_integer",
                param=place,
            )
        return number


@dataclass
class Flag(Shape):
    """True or false."""

    def read(self, value: Any, place: str) -> bool:
        if value not in ("true", "false"):
            raise Malformed(f"Invalid boolean: {value}", param=place)
        return bool(value == "true")


@dataclass
class Choice(Shape):
    """One word of a few."""

    words: tuple[str, ...]

    def read(self, value: Any, place: str) -> str:
        if value not in self.words:
            raise Malformed(f"Invalid {place}: must be one of {', '.join(self.words)}", param=place)
        return str(value)


@dataclass
class Words(Shape):
    """An object of short texts, as metadata is; an empty text takes its name away."""

    def read(self, value: Any, place: str) -> dict[str, str] | None:
        if value == "":
            return None
        if not isinstance(value, dict):
            raise Malformed("Invalid object", param=place)
        if len(value) > 50:
            raise Malformed("Metadata can have up to 50 keys.", param=place)
        return {key: self._word(item, f"{place}[{key}]") for key, item in value.items()}

    def _word(self, value: Any, place: str) -> str:
        if not isinstance(value, str) or len(value) > 500:
            raise Malformed("Metadata values can have up to 500 characters.", param=place)
        return value


@dataclass
class Several(Shape):
    """A list of values of one shape."""

    of: Shape
    most: int | None = None

    def read(self, value: Any, place: str) -> list[Any]:
        if not isinstance(value, dict) or not all(name.isdecimal() for name in value):
            raise Malformed("Invalid array", param=place)
        if self.most is not None and len(value) > self.most:
            raise Malformed(f"Array too long: at most {self.most} values.", param=place)
        return [self.of.read(value[name], f"{place}[{name}]") for name in sorted(value, key=int)]


@dataclass
class Hash(Shape):
    """An object with these names and no other."""

    fields: dict[str, Shape]
    required: tuple[str, ...] = ()

    def read(self, value: Any, place: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Malformed("Invalid object", param=place)
        for name in value:
            if name not in self.fields:
                where = f"{place}[{name}]" if place else name
                raise Malformed(f"Received unknown parameter: {where}", code="parameter_unknown", param=where)
        for name in self.required:
            if name not in value:
                where = f"{place}[{name}]" if place else name
                raise Malformed(f"Missing required param: {where}.", code="parameter_missing", param=where)
        return {
            name: self.fields[name].read(item, f"{place}[{name}]" if place else name)
            for name, item in value.items()
        }


@dataclass
class Either(Shape):
    """A single value, or an object."""

    single: Shape
    whole: Hash

    def read(self, value: Any, place: str) -> Any:
        return (self.whole if isinstance(value, dict) else self.single).read(value, place)
