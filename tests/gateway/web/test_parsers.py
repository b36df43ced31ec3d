"""Bodies that were written to keep the parser busy."""

import random
from typing import Any

import pytest

from gateway.common.errors import InvalidRequest
from gateway.web.parsers import _members


class Counting(str):
    """A name that counts how often one of its kind is compared with another."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Counting.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize("place", ["first", "last", "anywhere"])
def test_a_name_that_is_there_twice_is_found_without_comparing_all_with_all(place: str) -> None:
    names = [Counting(number) for number in range(5000)]
    twice = {"first": names[0], "last": names[-1], "anywhere": random.choice(names)}[place]
    pairs: list[tuple[str, Any]] = [(name, None) for name in [*names, Counting(twice)]]
    Counting.comparisons = 0

    with pytest.raises(InvalidRequest, match=f'two members named "{twice!s}"'):
        _members(pairs)
    assert Counting.comparisons < 5 * len(pairs)
