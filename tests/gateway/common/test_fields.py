"""Chain values keep their worth in PostgreSQL."""

import secrets

import pytest
from django.core.exceptions import ValidationError
from django.db import connection

from gateway.common.fields import UINT256_MAX, AddressField, Uint256Field, checksum


@pytest.mark.django_db
@pytest.mark.parametrize("number", [0, 2**53 + 1, 2**128, UINT256_MAX])
def test_a_256_bit_number_is_read_as_it_was_stored(number: int) -> None:
    field = Uint256Field()
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT %s::{field.db_type(connection)}", [field.get_prep_value(number)])
        row = cursor.fetchone()

    assert row is not None
    assert field.from_db_value(row[0], None, connection) == number


@pytest.mark.parametrize("number", [-1, UINT256_MAX + 1])
def test_a_number_outside_256_bits_is_refused(number: int) -> None:
    with pytest.raises(ValidationError):
        Uint256Field().get_prep_value(number)


def test_addresses_are_compared_by_value() -> None:
    address = "0x" + secrets.token_hex(20)
    field = AddressField()

    prepared = {field.get_prep_value(form) for form in (address, address.upper().replace("0X", "0x"))}
    assert prepared == {checksum(address)}


def test_an_invalid_address_does_not_reach_the_database() -> None:
    with pytest.raises(ValidationError):
        AddressField().get_db_prep_save("0x1234", connection)


def test_a_search_for_an_invalid_address_finds_nothing_and_raises_nothing() -> None:
    assert AddressField().get_prep_value("0x1234") == "0x1234"
