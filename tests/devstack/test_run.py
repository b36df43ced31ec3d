"""`run --once`: from an empty folder to a finished journey, whose data a second start keeps."""

import json
import re
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from backoffice.roles import ROLES
from devstack.django_process import run_django
from devstack.environment import keep_secrets
from devstack.files import PROJECT
from devstack.ports import free_port
from devstack.preparation import Prepared, demo_plan, prepare
from devstack.run import Options, _play
from devstack.services.stack import Services, start_services
from devstack.stack_file import described as described_profiles

_FIELDS = {
    "base_url",
    "admin_url",
    "rpc_url",
    "chain_id",
    "stripe_url",
    "stripe_secret_key",
    "stripe_publishable_key",
    "stripe_webhook_secret",
    "database_url",
    "application_database_url",
    "redis_url",
    "staff",
    "staff_by_role",
    "profiles",
    "networks",
    "sponsor",
    "second_chain",
}


def run_once(folder: Path) -> str:
    """Run the stack for the length of one journey; return what it printed."""
    command = [sys.executable, "-m", "devstack", "--data", str(folder), "run", "--once", "--block-time", "1"]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=1_500)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    return outcome.stdout


def described(folder: Path) -> dict[str, Any]:
    """Return the stack's own description."""
    description: dict[str, Any] = json.loads((folder / "stack.json").read_text())
    return description


@pytest.mark.journey
@pytest.mark.timeout(3_600)
def test_a_run_ends_well_and_a_second_start_makes_and_pays_nothing_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    printed = run_once(tmp_path)
    first = described(tmp_path)
    assert set(first) == _FIELDS
    assert "1000000 credits" in printed
    assert "the period has ended" in printed
    assert f"✓ setData on chain {first['second_chain']['chain_id']}: " in printed
    assert re.search(r"✓ a newcomer's profile 0x\w{40}: 0x\w{64}, gas \d+\n", printed)
    assert re.search(r"paid by my-dapp: [1-9]\d* \+ [1-9]\d* credits, 1000000 → ", printed)
    assert "adgem (OFFERWALL) is answered 200" in printed
    assert "levelled up: " in printed
    assert all(f"✓ {slug} (" in printed for slug in first["networks"])
    assert len(re.findall(r"cashback of .*% of \d+: [1-9]\d* credits", printed)) == 3
    assert "\n40 people are generated" in (tmp_path / "log" / "demo.log").read_text()
    assert "subscribed: sub_" in printed
    assert "7 people pay by card" in (tmp_path / "log" / "payers.log").read_text()
    assert set(first["staff_by_role"]) == set(ROLES)
    assert all(set(login) == set(first["staff"]) for login in first["staff_by_role"].values())
    assert set(first["networks"]["tapjoy"]) == {"address", "secret", "kind", "rate", "hold_hours"}
    assert first["stripe_secret_key"].startswith("sk_test_")
    assert first["stripe_publishable_key"].startswith("pk_test_")
    assert first["stripe_webhook_secret"].startswith("whsec_")
    assert first["sponsor"]["policies"] == ["first-calls", "vouchers", "newcomers"]
    assert all("EXECUTE_RELAY_CALL" in entry["permissions"] for entry in first["profiles"][:3])
    capfd.readouterr()
    with start_services(tmp_path) as services:
        before = _entries(services)
        prepared = prepare(services, tmp_path, demo_plan(), port=free_port(), block_time=1)
        prepared.seed()
        pay = ("-m", "devstack.demo.payers", str(tmp_path / "demo.json"))
        run_django(tmp_path / "log" / "payers.log", prepared.environment, *pay)
        assert _entries(services) == before
        assert services.stripe.secret_key == first["stripe_secret_key"]
    assert "deploying" not in capfd.readouterr().out
    assert described_profiles(prepared.profiles) == first["profiles"]
    assert asdict(prepared.secrets.staff) == first["staff"]
    assert prepared.staff_by_role == first["staff_by_role"]
    assert prepared.sponsor == first["sponsor"]
    assert prepared.networks["tapjoy"]["secret"] != first["networks"]["tapjoy"]["secret"]
    assert "0 people pay by card" in (tmp_path / "log" / "payers.log").read_text()
    assert "\n0 people are generated" in (tmp_path / "log" / "demo.log").read_text()
    assert not [process for process in psutil.process_iter(["cmdline"]) if _names(process, tmp_path)]


def _entries(services: Services) -> tuple[Any, ...] | None:
    """Return how many entries the ledger has, and their sum."""
    with psycopg.connect(services.database_url) as database:
        return database.execute("SELECT count(*), sum(amount) FROM credits_entry").fetchone()


def test_a_stack_for_load_makes_no_journey(tmp_path: Path) -> None:
    prepared = Prepared(tmp_path, 1, {}, {}, [], keep_secrets(tmp_path / "secrets.json"))
    assert _play(prepared, Options(tmp_path, load=True)) is None
    assert _play(prepared, Options(tmp_path, load=True, once=True)) == 0


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which another program listens."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def test_a_taken_port_is_one_line_before_anything_starts(tmp_path: Path, taken: int) -> None:
    command = [sys.executable, "-m", "devstack", "--data", str(tmp_path), "run", "--port", str(taken)]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert outcome.returncode == 1
    (told,) = outcome.stderr.splitlines()
    assert re.fullmatch(
        rf"✗ Port {taken} is used by another program\. Choose another one: make run PORT=\d+", told
    )
    assert not told.endswith(f"={taken}")
    assert outcome.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("is_number", [True, False])
def test_make_refuses_a_port_before_it_installs_anything(tmp_path: Path, taken: int, is_number: bool) -> None:
    port = str(taken) if is_number else f"{secrets.token_hex(4)}x"
    make = [
        "make",
        "--no-print-directory",
        "run",
        f"PORT={port}",
        f"PYTHON={sys.executable}",
        f"VENV={tmp_path}/.venv",
    ]
    outcome = subprocess.run(make, cwd=PROJECT, capture_output=True, text=True, timeout=600)
    assert outcome.returncode == 2
    reason = f"Port {port} is used by another program" if is_number else f"{port} is not a port"
    assert outcome.stderr.startswith(f"✗ {reason}. Choose another one: make run PORT=")
    assert (outcome.stdout, list(tmp_path.iterdir())) == ("", [])


def _names(process: psutil.Process, folder: Path) -> bool:
    return any(str(folder) in word for word in process.info["cmdline"] or [])
