"""Bodies that were written to keep the parser busy."""

import random
from io import BytesIO
from typing import Any

import pytest
from django.http import HttpRequest

from gateway.common.errors import InvalidRequest
from gateway.web.parsers import BoundedJSONParser, _members, _number


class Counting(str):
    """A name that counts how often one of its kind is compared with another."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Counting.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_a_duplicate_name_is_found_in_linear_time() -> None:
    names = [Counting(number) for number in range(5000)]
    twice = random.choice(names)
    pairs: list[tuple[str, Any]] = [(name, None) for name in [*names, Counting(twice)]]
    Counting.comparisons = 0

    with pytest.raises(InvalidRequest, match=f'two members named "{twice!s}"'):
        _members(pairs)
    assert Counting.comparisons < 5 * len(pairs)


@pytest.mark.parametrize(
    ("text", "value"),
    [("2550.0", 2550), ("255e1", 2550), ("-0.0", 0), ("9007199254740991.0", 2**53 - 1), ("1E3", 1000)],
)
def test_a_number_without_a_fraction_is_whole_in_any_notation(text: str, value: int) -> None:
    number = _number(text)
    assert (type(number), number) == (int, value)


@pytest.mark.parametrize(
    "text",
    [
        "25.5",
        "9007199254740992.0",
        "1e30",
        "1e400",
        "1e-400",
        "2550.00000000000000000001",
        "-9007199254740993.0",
    ],
)
def test_a_fraction_or_a_number_beyond_2_to_the_53_is_not(text: str) -> None:
    assert isinstance(_number(text), float)


@pytest.mark.parametrize("text", ['"\\ud800"', '["\\uDFFF"]', '{"a": {"b": "x\\udc00"}}', '{"\\ud800": 1}'])
def test_half_of_a_surrogate_pair_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="half of a surrogate pair"):
        _parsed(text)


def test_escaped_characters_outside_the_basic_plane_are_accepted() -> None:
    assert _parsed('{"a": "\\ud83d\\ude00\\u00e9"}') == {"a": "😀é"}


def _parsed(text: str) -> Any:
    context = {"request": HttpRequest()}
    return BoundedJSONParser().parse(BytesIO(text.encode()), parser_context=context)
