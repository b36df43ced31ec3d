"""Every command of the runbook can be typed: it has these options, and its service has what the command needs."""

import re
from typing import Any

import pytest
from django.core.management import get_commands, load_command_class

from gateway.processes import withheld
from tests.docs.pages import ROOT
from tests.docs.runbook import SERVICES, Typed, typed, unknown_words
from tests.factories import random_address

# Commands that are neither ours nor Compose's, and those of the backups, which `test_runbook_backups.py` runs.
ELSEWHERE = (
    *("docker image ls", "install -d", "sudo chown", "echo COMPOSE_FILE=", "make manage CMD=…"),
    *("echo server 127.0.0.1:", "sudo nginx -s reload"),
)
MODULES = ("python -m signer read /metrics", "python -m lab restore-drill", "python -m lab containers")
BACKUPS = ("pg_dump", "pg_restore", "pg_archivecleanup", "pg_basebackup", "-ec")
# What a command needs of the service that runs it; `migrate` and the eraser connect as the owner of the tables.
NEEDS = {
    "close_ledger_roots": "LEDGER_SIGNING_KEY",
    "audit_ledger": "LEDGER_PUBLIC_KEYS",
    "seal_network_secrets": "AD_NETWORK_SECRET_KEYS",
    "seal_webhook_secrets": "WEBHOOK_SECRET_KEYS",
    "verify_draws": "CHECKIN_SEED_SECRETS",
    "reconcile_payments": "STRIPE_SECRET_KEY",
    "erase_deleted_accounts": "the owner",
}
# "…" stands for a reason, which needs eight letters.
_STANDS_FOR = {"WEI": "1", "NUMBER": "1", "0xPROFILE": random_address(), "…": "a reason of some length"}


def _managed() -> list[Typed]:
    return [command for command in typed() if command.words[0] in get_commands()]


@pytest.mark.parametrize("command", _managed(), ids=str)
def test_a_management_command_takes_these_words(command: Typed) -> None:
    name, *words = command.words
    parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)

    parser.parse_args([_STANDS_FOR.get(word, word) for word in words])


@pytest.mark.parametrize("command", [one for one in _managed() if one.words[0] in NEEDS], ids=str)
def test_a_command_runs_in_the_process_with_its_secrets(command: Typed) -> None:
    need = NEEDS[command.words[0]]
    if command.service is None:
        return
    environment: dict[str, Any] = SERVICES[command.service]["environment"]

    if need == "the owner":
        assert "gateway:${POSTGRES_PASSWORD" in environment["DATABASE_URL"]
    else:
        assert need not in withheld(command.service)


@pytest.mark.parametrize(
    "command", [one for one in typed() if one.line.startswith("docker compose")], ids=str
)
def test_compose_has_the_services_of_a_command(command: Typed) -> None:
    assert unknown_words(command.words) == []


def test_every_other_command_is_known() -> None:
    lines = [command.line for command in typed() if command not in _managed()]

    known = ("docker compose", *ELSEWHERE, *MODULES, *BACKUPS)
    assert [line for line in lines if not line.startswith(known)] == []
    assert [start for start in known if not any(line.startswith(start) for line in lines)] == []


def test_compose_has_every_named_file_and_service() -> None:
    lines = " ".join(command.line for command in typed())

    assert SERVICES["web"]["image"].startswith("credit-relay-gateway:")
    (files,) = re.findall(r"COMPOSE_FILE=(\S+)", lines)
    assert all((ROOT / name).is_file() for name in files.split(":"))
    assert {command.service for command in typed()} - {None} <= SERVICES.keys()
