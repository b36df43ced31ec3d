"""The logins of the demo's staff, as `make run` and `make code` show them."""

import base64
import json
import re
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyotp
import pytest

from devstack.files import PROJECT


def _login(name: str) -> dict[str, str]:
    secret = base64.b32encode(secrets.token_bytes(20)).decode()
    return {"username": name, "password": secrets.token_hex(8), "totp_secret": secret}


@pytest.fixture
def described() -> dict[str, Any]:
    """A description of a stack, as in `stack.json`."""
    roles = {"support": _login("support"), "finance": _login("finance")}
    return {"admin_url": "http://127.0.0.1:1/admin/", "staff": _login("staff"), "staff_by_role": roles}


def _code(folder: Path, *role: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "devstack", "--data", str(folder), "code", *role]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=PROJECT)


@pytest.mark.parametrize("role", ["staff", "support"])
def test_a_login_is_shown_with_its_current_code(described: dict[str, Any], tmp_path: Path, role: str) -> None:
    login = described["staff"] if role == "staff" else described["staff_by_role"][role]
    (tmp_path / "stack.json").write_text(json.dumps(described))

    shown = _code(tmp_path, *([] if role == "staff" else [role])).stdout

    found = re.search(r"^  code      (\d{6}) ", shown, re.MULTILINE)
    assert found is not None
    assert pyotp.TOTP(login["totp_secret"]).verify(found[1], valid_window=1)
    assert (
        f"  admin     {described['admin_url']}\n  name      {role}\n  password  {login['password']}\n"
        in shown
    )


def test_the_error_for_an_unknown_role_lists_the_known_roles(
    described: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "stack.json").write_text(json.dumps(described))

    outcome = _code(tmp_path, "owner")

    assert outcome.returncode == 1
    assert outcome.stderr == "✗ There is no login owner. There are: staff, support, finance.\n"


def test_without_a_stack_there_is_no_login(tmp_path: Path) -> None:
    outcome = _code(tmp_path)

    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert outcome.stderr == "✗ No stack has run yet; start one with `make run`.\n"
