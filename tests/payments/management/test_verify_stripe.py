"""`manage.py verify_stripe` as an operator sees it, tried against the double."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from payments.management.commands.verify_stripe import _read
from tests.payments.stripe_accounts import DoubleAccount


def test_a_part_of_the_contract_holds_for_the_double_reached_as_stripe_is(
    double: DoubleAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VERIFIED_STRIPE_KEY", raising=False)
    said = StringIO()
    call_command("verify_stripe", only="deleted_customer or test_clock", stdout=said)
    assert f"{double.server.url}: 3 held, 0 differ." in said.getvalue()


def test_a_difference_is_named_with_the_first_line_of_its_cause(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    cases = (
        '<testcase name="a"/><testcase name="b"><failure message="not 1&#10;but 2"/></testcase>'
        '<testcase name="c"><error/></testcase>'
    )
    report.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    assert _read(report) == (1, [("b", "not 1"), ("c", "failed")])


@pytest.mark.parametrize("key", ["", "sk_live_x", "rk_live_x", "pk_test_x"])
def test_no_key_but_one_of_test_mode_is_used(
    settings: Any, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.delenv("VERIFIED_STRIPE_KEY", raising=False)
    settings.STRIPE_SECRET_KEY = key
    with pytest.raises(CommandError, match="test mode"):
        call_command("verify_stripe")
