"""
Model fields for values of a chain (addresses, 32-byte hashes, 256-bit numbers), times, and references to staff.

Migrations import these fields and no other module of the project, so a field must keep its name,
arguments and column type.
"""

from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone
from eth_utils.address import is_hex_address, to_checksum_address

from gateway.common import clock

UINT256_MAX = 2**256 - 1
# Clients that read JSON numbers as floats lose digits of numbers above this one.
SAFE_INTEGER_MAX = 2**53 - 1
_UINT256_DIGITS = 78

# The types for assigning and reading; with null=True the mypy plugin adds None to both.
_Set = TypeVar("_Set", contravariant=True)
_Get = TypeVar("_Get", covariant=True)
if not TYPE_CHECKING:
    # Django's fields are generic only for type checkers.
    models.Field.__class_getitem__ = classmethod(lambda field, _: field)


@lru_cache(maxsize=65_536)
def checksum(address: str) -> str:
    """
    Return the EIP-55 form of a 20-byte hex address in any casing.

    Raises:
        ValueError: the text is not an address.
    """
    if not is_hex_address(address) or not address[:2].lower() == "0x":
        raise ValueError("not a 20-byte hex address")
    return to_checksum_address(address)


def staff_reference(help_text: str) -> Any:
    """Return a foreign key, without an index, to the member of staff who did something."""
    return models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        help_text=help_text,
    )


class ClockField(models.DateTimeField[_Set, _Get]):
    """A time, by default the current one by the database's clock. Migrations see Django's own field."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["default"] = clock.now
        super().__init__(*args, **kwargs)

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        kwargs["default"] = timezone.now
        return name, "django.db.models.DateTimeField", args, kwargs


class _HexField(models.CharField[_Set, _Get]):
    """Text of a fixed length; migrations omit the length."""

    length: ClassVar[int]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["max_length"] = self.length
        super().__init__(*args, **kwargs)

    def deconstruct(self) -> Any:
        name, path, args, kwargs = super().deconstruct()
        del kwargs["max_length"]
        return name, path, args, kwargs


class AddressField(_HexField[_Set, _Get]):
    """An address, stored as EIP-55 text, so that equal addresses are equal values."""

    length = 42

    def get_prep_value(self, value: Any) -> Any:
        """Convert a value for a lookup. Search boxes pass any text, so text that is not an address matches no row."""
        try:
            return super().get_prep_value(value)
        except ValidationError:
            return str(value)

    def get_db_prep_save(self, value: Any, connection: BaseDatabaseWrapper) -> Any:
        """Store the checksummed form; text that is not an address is refused."""
        return value if hasattr(value, "as_sql") else self.to_python(value)

    def to_python(self, value: Any) -> Any:
        if value in {None, ""}:
            return value
        try:
            return checksum(str(value))
        except ValueError as error:
            raise ValidationError("Enter a 20-byte hex address.", code="invalid") from error


class HashField(_HexField[_Set, _Get]):
    """A 32-byte hash as lower-case 0x-hex."""

    length = 66

    def get_prep_value(self, value: Any) -> Any:
        prepared = super().get_prep_value(value)
        return prepared if prepared is None else prepared.lower()


class Uint256Field(models.Field[_Set, _Get]):
    """An unsigned 256-bit whole number: `numeric(78, 0)` in PostgreSQL, `int` in Python."""

    description = "Unsigned 256-bit whole number"
    _pyi_private_set_type: int
    _pyi_private_get_type: int

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return f"numeric({_UINT256_DIGITS}, 0)"

    def from_db_value(
        self, value: Decimal | None, expression: Any, connection: BaseDatabaseWrapper
    ) -> int | None:
        return None if value is None else int(value)

    def to_python(self, value: Any) -> Any:
        if value is None or isinstance(value, int):
            return value
        try:
            return int(str(value))
        except ValueError as error:
            raise ValidationError("Enter a whole number.", code="invalid") from error

    def get_prep_value(self, value: Any) -> Any:
        number = self.to_python(super().get_prep_value(value))
        if number is not None and not 0 <= number <= UINT256_MAX:
            raise ValidationError("A uint256 is between 0 and 2^256 - 1.", code="out-of-range")
        return number
