"""Statements in `.sql` files."""

from pathlib import Path

import pytest

from gateway.common.statements import Statements, fill, literals

_TEXT = """-- Statements of a test.

-- name: one
-- Returns one, with
-- the values of the code.
SELECT @columns@ FROM users_user
-- A reason inside the statement.
WHERE status IN (@statuses@) AND id = %(user)s -- kept

-- name: two
SELECT 2
"""


def test_statements_are_read_without_comments_and_with_values(tmp_path: Path) -> None:
    (tmp_path / "queries.sql").write_text(_TEXT)

    class Sql(Statements, file=tmp_path / "queries.py", columns="id, name", statuses=literals("a", "b")):
        one: str
        two: str

    assert Sql.one == (
        "SELECT id, name FROM users_user\nWHERE status IN ('a', 'b') AND id = %(user)s -- kept"
    )
    assert Sql.two == "SELECT 2"


def test_statements_share_parts_and_leave_words_to_others(tmp_path: Path) -> None:
    package = tmp_path / "queries"
    package.mkdir()
    (tmp_path / "queries.sql").write_text(
        "-- part: columns\nid, @more@\n\n-- name: all\nSELECT @columns@, @other@\n\n"
        "-- name: is_active(user, now)\nEXISTS (SELECT @columns@ WHERE id = @user@ AND ends_at > @now@)\n"
    )

    class Sql(Statements, file=package / "__init__.py", shared={"other": "3", "unused": "4"}, more="2"):
        all: str
        is_active: str

    assert Sql.all == "SELECT id, 2, 3"
    assert not hasattr(Sql, "columns")
    assert fill(Sql.is_active, {"user": "1", "now": "now()"}) == (
        "EXISTS (SELECT id, 2 WHERE id = 1 AND ends_at > now())"
    )


def _declare(file: Path, names: list[str], values: dict[str, str]) -> None:
    type("Sql", (Statements,), {"__annotations__": dict.fromkeys(names, str)}, file=file, **values)


@pytest.mark.parametrize(
    ("text", "names", "values", "error"),
    [
        (_TEXT, ["one"], {"columns": "id", "statuses": "'a'"}, "'two'"),
        (_TEXT, ["one", "two", "three"], {"columns": "id", "statuses": "'a'"}, "'two'"),
        (f"{_TEXT}\n-- name: two\nSELECT 3\n", ["one", "two"], {"columns": "id", "statuses": "'a'"}, "'two'"),
        (f"SELECT 0\n{_TEXT}", ["one", "two"], {"columns": "id", "statuses": "'a'"}, "'two'"),
        (_TEXT, ["one", "two"], {"columns": "id", "statuses": "'a'", "other": "1"}, "'other'"),
        (f"-- part: other\n1\n{_TEXT}", ["one", "two"], {"columns": "id", "statuses": "'a'"}, "'other'"),
    ],
    ids=[
        "not declared",
        "not in the file",
        "two of one name",
        "without a name",
        "unused value",
        "unused part",
    ],
)
def test_a_file_that_differs_from_its_declaration_is_refused(
    tmp_path: Path, text: str, names: list[str], values: dict[str, str], error: str
) -> None:
    (tmp_path / "queries.sql").write_text(text)
    with pytest.raises(ValueError, match=error):
        _declare(tmp_path / "queries.py", names, values)


def test_a_placeholder_without_a_value_is_refused(tmp_path: Path) -> None:
    (tmp_path / "queries.sql").write_text(_TEXT)
    with pytest.raises(KeyError, match="statuses"):
        _declare(tmp_path / "queries.py", ["one", "two"], {"columns": "id"})
    with pytest.raises(KeyError, match="name"):
        fill("SELECT @name@", {})
