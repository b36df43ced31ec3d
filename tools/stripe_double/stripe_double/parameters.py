"""The types of parameters; errors name the parameter."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from stripe_double.errors import InvalidParameters


class Parameter(ABC):
    """The type of one parameter."""

    @abstractmethod
    def read(self, value: Any, param: str) -> Any:
        """Return the Python value; `param` is the parameter's full name, as in `items[0][price]`."""


@dataclass
class String(Parameter):
    """A text; an empty one unsets the field (None) if that is allowed."""

    max_length: int = 5000
    can_unset: bool = False

    def read(self, value: Any, param: str) -> str | None:
        if not isinstance(value, str):
            raise InvalidParameters(f"Invalid string: {value}", param=param)
        if value == "":
            if self.can_unset:
                return None
            raise InvalidParameters(
                f"You passed an empty string for '{param}'. We assume empty values are an attempt to unset a "
                f"parameter; however '{param}' cannot be unset.",
                code="parameter_invalid_empty",
                param=param,
            )
        if len(value) > self.max_length:
            raise InvalidParameters(f"Invalid string: too long (max {self.max_length})", param=param)
        return value


@dataclass
class Integer(Parameter):
    """A whole number within limits."""

    minimum: int | None = None
    maximum: int | None = None
    can_unset: bool = False

    def read(self, value: Any, param: str) -> int | None:
        if self.can_unset and value == "":
            return None
        if not isinstance(value, str) or not value.lstrip("-").isdecimal():
            raise self._invalid(f"Invalid integer: {value}", param)
        number = int(value)
        if self.minimum is not None and number < self.minimum:
            raise self._invalid(f"This value must be greater than or equal to {self.minimum}.", param)
        if self.maximum is not None and number > self.maximum:
            raise self._invalid(f"This value must be less than or equal to {self.maximum}.", param)
        return number

    def _invalid(self, message: str, param: str) -> InvalidParameters:
        return InvalidParameters(message, code="parameter_invalid_integer", param=param)


@dataclass
class Boolean(Parameter):
    """True or false."""

    def read(self, value: Any, param: str) -> bool:
        if value not in ("true", "false"):
            raise InvalidParameters(f"Invalid boolean: {value}", param=param)
        return bool(value == "true")


@dataclass
class Enum(Parameter):
    """One of a few words."""

    values: tuple[str, ...]

    def read(self, value: Any, param: str) -> str:
        if value not in self.values:
            raise InvalidParameters(f"Invalid {param}: must be one of {', '.join(self.values)}", param=param)
        return str(value)


@dataclass
class Metadata(Parameter):
    """Metadata: an empty text removes its key, an empty value (None) removes all."""

    def read(self, value: Any, param: str) -> dict[str, str] | None:
        if value == "":
            return None
        if not isinstance(value, dict):
            raise InvalidParameters("Invalid object", param=param)
        if len(value) > 50:
            raise InvalidParameters("Metadata can have up to 50 keys.", param=param)
        for key, text in value.items():
            if not isinstance(text, str) or len(text) > 500:
                message = "Metadata values can have up to 500 characters."
                raise InvalidParameters(message, param=f"{param}[{key}]")
        return value


@dataclass
class Array(Parameter):
    """A list of values of one type."""

    items: Parameter
    max_items: int | None = None

    def read(self, value: Any, param: str) -> list[Any]:
        if not isinstance(value, dict) or not all(name.isdecimal() for name in value):
            raise InvalidParameters("Invalid array", param=param)
        if self.max_items is not None and len(value) > self.max_items:
            raise InvalidParameters(f"Array too long: at most {self.max_items} values.", param=param)
        return [self.items.read(value[name], f"{param}[{name}]") for name in sorted(value, key=int)]


@dataclass
class Hash(Parameter):
    """An object with exactly these fields."""

    fields: dict[str, Parameter]
    required: tuple[str, ...] = ()

    def read(self, value: Any, param: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise InvalidParameters("Invalid object", param=param)
        names = {name: f"{param}[{name}]" if param else name for name in (*value, *self.required)}
        for name, full in names.items():
            if name not in self.fields:
                message = f"Received unknown parameter: {full}"
                raise InvalidParameters(message, code="parameter_unknown", param=full)
            if name not in value:
                message = f"Missing required param: {full}."
                raise InvalidParameters(message, code="parameter_missing", param=full)
        return {name: self.fields[name].read(item, names[name]) for name, item in value.items()}


@dataclass
class ValueOrHash(Parameter):
    """A single value, or an object."""

    value: Parameter
    hash: Hash

    def read(self, value: Any, param: str) -> Any:
        return (self.hash if isinstance(value, dict) else self.value).read(value, param)


_TIMESTAMP = Integer(minimum=0)
_TIMESTAMPS = ValueOrHash(
    _TIMESTAMP, Hash({"gt": _TIMESTAMP, "gte": _TIMESTAMP, "lt": _TIMESTAMP, "lte": _TIMESTAMP})
)
CURSORS: dict[str, Parameter] = {
    "limit": Integer(minimum=1, maximum=100),
    "starting_after": String(),
    "ending_before": String(),
}
PAGE: dict[str, Parameter] = {**CURSORS, "created": _TIMESTAMPS}


@dataclass
class Parameters:
    """The parameters of one operation; every operation also takes `expand`."""

    required: tuple[str, ...] = ()
    fields: dict[str, Parameter] = field(default_factory=dict)

    def read(self, form: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters in the request by name."""
        return Hash({**self.fields, "expand": Array(String())}, self.required).read(form, "")


def takes(*required: str, **fields: Parameter) -> Parameters:
    """Return the parameters of one operation."""
    return Parameters(required, fields)
