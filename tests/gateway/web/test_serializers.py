"""The wire's fields take the documented values and nothing else."""

import secrets
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from gateway.common.errors import WrongChecksum
from gateway.common.fields import UINT256_MAX
from gateway.web.serializers import (
    AddressField,
    BodySerializer,
    HashField,
    HexField,
    StrictIntegerField,
    Uint256Field,
    rendered,
)

numbers = st.integers(min_value=0, max_value=UINT256_MAX)


@given(numbers)
def test_a_number_may_be_an_integer_decimal_text_or_hex_text(number: int) -> None:
    for form in (
        number,
        str(number),
        hex(number),
        hex(number).upper().replace("0X", "0x"),
        f"0x{number:064x}",
    ):
        assert Uint256Field().run_validation(form) == number


@given(numbers)
def test_a_number_leaves_as_decimal_text(number: int) -> None:
    assert Uint256Field().to_representation(number) == str(number)


@pytest.mark.parametrize(
    "form",
    [1.0, 0.5, 1e30, True, -1, UINT256_MAX + 1, "", "1.0", "1e5", " 1", "0x", "0xg", "-1", [], {}, "१"],
)
def test_any_other_value_is_an_invalid_number(form: Any) -> None:
    with pytest.raises(ValidationError):
        Uint256Field().run_validation(form)


@given(st.binary(min_size=4, max_size=40))
def test_bytes_survive_a_round_trip(data: bytes) -> None:
    field = HexField(min_bytes=4, max_bytes=40)

    assert field.run_validation(field.to_representation(data)) == data
    assert field.run_validation("0x" + data.hex().upper()) == data


@pytest.mark.parametrize("form", ["", "0x", "0x123", "1234", "0xzz", "0x12\n", None, 12, "0x" + "00" * 41])
def test_bytes_of_another_form_or_length_are_refused(form: Any) -> None:
    with pytest.raises(ValidationError):
        HexField(min_bytes=1, max_bytes=40).run_validation(form)


def test_an_address_in_any_casing_becomes_its_checksummed_form() -> None:
    checksummed = "0xBB645D97B0c7D101ca0d73131e521fe89B463BFD"

    for form in (checksummed, checksummed.lower(), "0x" + checksummed[2:].upper()):
        assert AddressField().run_validation(form) == checksummed


def test_an_address_with_a_wrong_checksum_has_an_error_code_of_its_own() -> None:
    # Three or more letters of each casing, so that no single change leaves one casing alone.
    checksummed = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
    assert AddressField().run_validation(checksummed) == checksummed
    for at, letter in enumerate(checksummed):
        if at < 2 or letter.isdigit():
            continue
        with pytest.raises(WrongChecksum, match="EIP-55"):
            AddressField().run_validation(checksummed[:at] + letter.swapcase() + checksummed[at + 1 :])


@pytest.mark.parametrize("form", ["", "0x", "0x" + "ab" * 19, "ab" * 20, "0x" + "zz" * 20, 5, None, {}])
def test_an_invalid_address_is_refused(form: Any) -> None:
    with pytest.raises(ValidationError):
        AddressField().run_validation(form)


def test_a_hash_is_32_bytes_and_leaves_in_lower_case() -> None:
    digest = secrets.token_hex(32)
    assert HashField().run_validation("0x" + digest.upper()) == "0x" + digest
    for form in ("0x" + digest[2:], digest, "0x" + digest + "00", 7):
        with pytest.raises(ValidationError):
            HashField().run_validation(form)


@pytest.mark.parametrize("form", ["5", 5.0, True, None])
def test_an_integer_is_a_json_integer(form: Any) -> None:
    with pytest.raises(ValidationError):
        StrictIntegerField().run_validation(form)


class _Inner(BodySerializer):
    number = Uint256Field()
    text = serializers.CharField(required=False, default="none", max_length=3)


class _Body(BodySerializer):
    address = AddressField()
    inner = _Inner()
    flag = serializers.BooleanField(required=False, allow_null=True)

    def validate_flag(self, value: bool | None) -> bool | None:
        if value is False:
            raise serializers.ValidationError("It must not be false.", code="false")
        return value


_ADDRESS = "0xbb645d97b0c7d101ca0d73131e521fe89b463bfd"
_anything: Any = (
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.just(_ADDRESS) | st.just([])
)
_bodies = _anything | st.fixed_dictionaries(
    {},
    optional={
        "address": _anything,
        "inner": _anything | st.fixed_dictionaries({}, optional={"number": _anything, "text": _anything}),
        "flag": _anything,
        "unknown": _anything,
    },
)


@given(_bodies)
@example({"address": _ADDRESS, "inner": {"number": 1}})
@example({"address": _ADDRESS, "inner": {"number": 1}, "flag": False})
def test_a_body_is_read_as_a_serializer_of_its_own_would(body: Any) -> None:
    def alone(body: Any) -> Any:
        serializer = _Body(data=body)
        serializer.is_valid(raise_exception=True)
        return serializer.validated_data

    assert _outcome(_Body.read, body) == _outcome(alone, body)


def _outcome(read: Any, body: Any) -> Any:
    try:
        return read(body)
    except ValidationError as refused:
        return refused.get_full_details()


def test_each_body_gets_a_fresh_default() -> None:
    first = _Body.read({"address": _ADDRESS, "inner": {"number": 1}})
    first["inner"]["text"] = "changed"

    assert _Body.read({"address": _ADDRESS, "inner": {"number": 1}})["inner"]["text"] == "none"


class _Answer(serializers.Serializer[Any]):
    number = serializers.IntegerField(source="value")
    whose = serializers.SerializerMethodField()

    def get_whose(self, row: Any) -> Any:
        return self.context.get("name")


class _Answers(serializers.Serializer[Any]):
    first = _Answer()
    rest = _Answer(many=True)


def test_a_response_is_rendered_as_by_its_own_serializer() -> None:
    for name in ("a", "b"):
        rows = {"first": {"value": 1}, "rest": [{"value": 2}, {"value": 3}]}
        assert rendered(_Answers, rows, name=name) == _Answers(rows, context={"name": name}).data
    assert rendered(_Answer, {"value": 4}) == {"number": 4, "whose": None}


def test_threads_render_with_contexts_of_their_own() -> None:
    def names(name: str) -> set[str]:
        return {rendered(_Answer, {"value": 1}, name=name)["whose"] for _ in range(2_000)}

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(names, "abcd")) == [{"a"}, {"b"}, {"c"}, {"d"}]
