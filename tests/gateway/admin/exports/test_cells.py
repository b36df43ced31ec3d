"""No text of a cell is a formula, and numbers stay numbers."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.admin.exports import cell_of, harmless

_STARTS = ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"]


@pytest.mark.parametrize("start", _STARTS)
@pytest.mark.parametrize("blanks", ["", " ", "   "])
def test_a_text_that_begins_like_a_formula_gets_an_apostrophe(start: str, blanks: str) -> None:
    text = f'{blanks}{start}HYPERLINK("https://example.org/?"&A1)'

    assert cell_of(text) == f"'{text}"


@given(st.text())
def test_no_text_begins_like_a_formula_and_none_loses_a_letter(text: str) -> None:
    cell = harmless(text)

    assert not cell.lstrip(" ").startswith(tuple(_STARTS))
    assert cell in {text, f"'{text}"}


@pytest.mark.parametrize("number", [-5, 0, 7, -(2**70), Decimal("-0.25")])
def test_a_number_stays_a_number_also_below_zero(number: int | Decimal) -> None:
    assert cell_of(number) is number


def test_other_values_are_written_as_text() -> None:
    moment = datetime(2026, 3, 1, 1, 30, 5, 123, timezone(timedelta(hours=2)))

    assert cell_of(None) == ""
    assert [cell_of(True), cell_of(False)] == ["yes", "no"]
    assert cell_of(moment) == "2026-02-28T23:30:05+00:00"
    assert cell_of(date(2026, 3, 1)) == "2026-03-01"
    assert cell_of(datetime(2026, 1, 1, tzinfo=UTC)) == "2026-01-01T00:00:00+00:00"
