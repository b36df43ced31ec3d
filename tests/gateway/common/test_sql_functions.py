"""Functions of the database: put in by `migrate`, compared by the check, `/metrics` and each process at its start."""

from pathlib import Path

import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.db import OperationalError, connections

from gateway.common import sql_functions
from tests.database import as_owner

pytestmark = pytest.mark.django_db
_NAME = "credits_withdraw_holds"
_OTHER = """
CREATE OR REPLACE FUNCTION credits_withdraw_holds(holds bigint[]) RETURNS void LANGUAGE sql AS $$ SELECT $$
"""


def test_the_test_database_has_the_functions_of_the_code() -> None:
    assert sql_functions.differing() == []
    assert run_checks(tags=["database"], databases=["default"]) == []


@pytest.mark.parametrize(
    "edit",
    [
        _OTHER,
        f"ALTER FUNCTION {_NAME} SECURITY DEFINER",
        f"ALTER FUNCTION {_NAME} STABLE",
        f"COMMENT ON FUNCTION {_NAME} IS NULL",
        f"DROP FUNCTION {_NAME}",
        f"CREATE FUNCTION {_NAME}(hold bigint) RETURNS void LANGUAGE sql AS $$ SELECT $$",
    ],
)
def test_the_check_finds_every_manual_edit(edit: str) -> None:
    as_owner(edit)

    assert sql_functions.differing() == [_NAME]
    (error,) = run_checks(tags=["database"], databases=["default"])
    assert (error.id, _NAME in error.msg) == ("gateway.E001", True)
    with pytest.raises(CommandError, match=r"gateway\.E001"):
        call_command("check", databases=["default"])
    # Without the option no check asks the database, so that a process starts.
    assert "gateway.E001" not in {error.id for error in run_checks()}


def test_a_process_logs_differences_and_starts(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql_functions.log_differing().join()
    assert caplog.messages == []

    monkeypatch.setitem(sql_functions.FUNCTIONS, "credits_of_a_later_version", "CREATE …")
    sql_functions.log_differing().join()
    assert caplog.messages == [
        "These functions of the database differ from the code: credits_of_a_later_version"
    ]


def test_a_process_starts_while_the_database_is_away(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_: object) -> None:
        raise OperationalError("no connection")

    monkeypatch.setattr(type(connections["default"]), "connect", away)
    sql_functions.log_differing().join()
    assert caplog.messages == ["The functions of the database cannot be compared: OperationalError"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("CREATE TABLE credits_other ();", ValueError),
        ("CREATE OR REPLACE FUNCTION one() RETURNS text LANGUAGE sql AS $$ SELECT @name@ $$;", KeyError),
    ],
)
def test_a_file_with_something_else_is_refused(tmp_path: Path, text: str, error: type[Exception]) -> None:
    before = dict(sql_functions.FUNCTIONS)
    (tmp_path / "functions.sql").write_text(f"-- A comment.\n{text}\n")
    with pytest.raises(error):
        sql_functions.register(tmp_path, {"another": "''"})
    assert before == sql_functions.FUNCTIONS


def test_a_retired_function_stays_beside_its_successor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_functions, "FUNCTIONS", {})
    text = "CREATE OR REPLACE FUNCTION {}() RETURNS text LANGUAGE sql AS $$ SELECT @name@ $$;"
    (tmp_path / "functions.sql").write_text(text.format("two"))
    (tmp_path / "retired.sql").write_text(f"-- Until 1.2.\n{text.format('one')}")
    sql_functions.register(tmp_path, {"name": "'x'"})
    assert {
        name: text.format(name).replace("@name@", "'x'") for name in ("two", "one")
    } == sql_functions.FUNCTIONS
