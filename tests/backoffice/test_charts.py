"""What charts show: the same to the eye, in the table and in words."""

import json

from backoffice import cards


def test_columns_have_every_series_and_name_the_highest() -> None:
    chart = cards.columns([("01:00", {"a": 2, "b": 1}), ("02:00", {}), ("03:00", {"a": 1_500})], ["a", "b"])

    assert chart is not None
    assert chart.rows == [("01:00", [2, 1]), ("02:00", [0, 0]), ("03:00", [1_500, 0])]
    drawn = json.loads(chart.data)
    assert drawn["labels"] == ["01:00", "02:00", "03:00"]
    assert [(one["label"], one["data"]) for one in drawn["datasets"]] == [
        ("a", [2, 0, 1_500]),
        ("b", [1, 0, 0]),
    ]
    assert json.loads(chart.options)["plugins"]["legend"]["display"]
    assert chart.summary == "At most 1,500, at 03:00."


def test_a_line_describes_its_first_last_lowest_and_highest_value() -> None:
    chart = cards.line([("mon", 5), ("tue", -1_000), ("wed", 7)], "credits")

    assert chart is not None
    assert [one["data"] for one in json.loads(chart.data)["datasets"]] == [[5, -1_000, 7]]
    assert chart.summary == "From 5 to 7; between -1,000 and 7."


def test_nothing_is_drawn_of_nothing() -> None:
    assert cards.columns([("01:00", {}), ("02:00", {"a": 0})], ["a"]) is None
    assert cards.columns([], ["a"]) is None
    assert cards.line([("mon", 1)], "credits") is None


def test_shares_are_of_the_largest() -> None:
    assert cards.shares({"a": 200, "b": 50}) == [("a", 200, 100), ("b", 50, 25)]
    assert cards.shares({}) == []
